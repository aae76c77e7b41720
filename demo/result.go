package demo

import (
	"encoding/json"

	"headgate.dev/headgate/group"
)

// Result is the result of a demo.
type Result struct {
	Engine group.Engine `json:"engine"`
	Fast   bool         `json:"fast"`
	// Tolerance is the fraction by which a rate may be below the guarantee.
	Tolerance float64       `json:"tolerance"`
	Phases    []PhaseResult `json:"phases"`
	// Others has the hosts whose links are not congested, over all phases except the first.
	Others PhaseResult `json:"other_hosts"`
	// Returned is the time until storage had its guarantee again in scenario.Return, by
	// direction. A direction that never reached the guarantee has no entry.
	Returned map[string]float64 `json:"returned_ms"`
	// Moved has the rates of the connection that was assigned to another group.
	Moved struct {
		Connection string  `json:"connection"`
		Before     float64 `json:"before_bps"`
		After      float64 `json:"after_bps"`
	} `json:"moved"`
	// Changes are the guarantees that shop's program got. Requests are its requests, and
	// OtherTenant those of another tenant for shop's groups.
	Changes     []Change  `json:"tenant_changes"`
	Requests    []Request `json:"tenant_requests"`
	OtherTenant []Request `json:"other_tenant_requests"`
	// Usage has the agents' usage records over the whole demo.
	Usage []Usage `json:"proof"`
	// Disturbed describes the load of other programs on the machine, "" if it was low.
	Disturbed string   `json:"disturbed,omitempty"`
	CleanedUp bool     `json:"cleaned_up"`
	Left      []string `json:"left,omitempty"`    // remains after the cleanup
	Kept      string   `json:"kept,omitempty"`    // the name of the network, with Options.Keep
	Service   string   `json:"service,omitempty"` // the URL of the service, with Options.Keep
	OK        bool     `json:"ok"`
}

// PhaseResult has the groups of one or more hosts in a phase.
type PhaseResult struct {
	Phase   int           `json:"phase"` // from 1; 0 for several
	Title   string        `json:"title"`
	Seconds float64       `json:"seconds"`         // the length of the phase
	Counted float64       `json:"counted_seconds"` // the measured part, at its end
	Control ControlRates  `json:"control_bps"`
	Groups  []GroupResult `json:"groups"`
}

// ControlRates has the rates of control traffic.
type ControlRates struct {
	Out float64 `json:"out"`
	In  float64 `json:"in"`
}

// GroupResult is one group in one direction and phase. Rates are layer 2.
type GroupResult struct {
	Host      string  `json:"host"`
	Direction string  `json:"direction"`
	Group     string  `json:"group"` // a tenant's group is the sum of its child groups
	Guarantee uint64  `json:"guarantee_bps"`
	Demand    uint64  `json:"wanted_bps"` // 0 in a phase in which the group is idle
	Share     uint64  `json:"share_bps"`  // the allocation by share.Allocate for all groups' demands
	Received  float64 `json:"received_bps"`
	// Retransmitted TCP segments and Lost datagrams are counted by the hosts. Drops
	// are those of the group's queue.
	Retransmitted uint64 `json:"retransmitted"`
	Lost          uint64 `json:"lost"`
	Drops         uint64 `json:"drops"`
	// Inside is true for a leaf group whose demand is within its guarantee, so that it should
	// lose nothing.
	Inside  bool    `json:"inside_guarantee"`
	Verdict Verdict `json:"verdict"`
}

// Verdict is the assessment of a group's rate.
type Verdict string

// The verdicts.
const (
	VerdictOK     Verdict = "ok"
	VerdictLow    Verdict = "low"    // the guarantee was met, but the group borrowed less than its share
	VerdictMissed Verdict = "MISSED" // less than the guarantee and than the demand
)

// Request is an API request and its answer.
type Request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Status int             `json:"status"`
	// Answer is the group's state, or the problem details of a rejected request.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Change is a change of guarantee by a tenant's program.
type Change struct {
	Guarantee string `json:"guarantee"`
	// InForce is the time from the first request until the guarantee was in force, in ms.
	InForce float64 `json:"in_force_ms"`
}

// Usage is an agent's usage record of a group over the whole demo, with the bytes received
// at the other end.
type Usage struct {
	Tenant     string `json:"tenant"`
	Host       string `json:"host"`
	Direction  string `json:"direction"`
	Group      string `json:"group"`
	Guaranteed int64  `json:"guaranteed_bytes"`
	Borrowed   int64  `json:"borrowed_bytes"`
	Lent       int64  `json:"lent_bytes"`
	Delivered  int64  `json:"delivered_bytes"`
	Received   int64  `json:"received_bytes"`
	// Unmet counts the seconds with a backlog in which the guarantee was not met.
	Unmet int64 `json:"unmet_seconds"`
}
