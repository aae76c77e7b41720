package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// noSchedule returns the refusal if there is no probe schedule.
func noSchedule() *Refusal {
	return refuse(http.StatusNotFound, "no probe schedule is set: set one first")
}

// scheduleDoc is the schedule as its own API form.
func scheduleDoc(s schedule.Schedule) schedule.Schedule { return s }

// GetProbeSchedule shows the probe schedule.
func (s *Server) GetProbeSchedule(w http.ResponseWriter, r *http.Request) {
	out, err := get[schedule.Schedule](s, r, store.ScheduleKey, noSchedule())
	writeResource(w, r, out, err)
}

// PutProbeSchedule creates or replaces the probe schedule.
func (s *Server) PutProbeSchedule(w http.ResponseWriter, r *http.Request, _ api.PutProbeScheduleParams) {
	want, err := parseBody[schedule.Schedule](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	want = want.WithDefaults()
	s.change(w, r, store.ScheduleKey, func(c *changeRequest) (response, error) {
		if _, err := readCurrent(c, store.ScheduleKey, scheduleDoc); err != nil {
			return response{}, err
		}
		// One read of all hosts: an external etcd may limit the number of operations in a transaction.
		keys, err := c.tx.Keys(store.Prefix(store.Hosts))
		if err != nil {
			return response{}, err
		}
		if err := checkSchedule(want, keys); err != nil {
			return response{}, err
		}
		return put(c, store.ScheduleKey, want, scheduleDoc)
	})
}

// checkSchedule refuses an invalid schedule and one with a host that does not exist.
func checkSchedule(want schedule.Schedule, hosts []string) error {
	out := &Refusal{Status: http.StatusUnprocessableEntity}
	for _, p := range want.Check() {
		out.Fields = append(out.Fields, Field{p.Field, p.Message})
	}
	named := map[string]string{} // field, by host
	for _, p := range want.Pairs {
		named[p[0]], named[p[1]] = "pairs", "pairs"
	}
	for _, h := range want.Hosts {
		named[h.Host] = "hosts"
	}
	for name, where := range named {
		if !slices.Contains(hosts, store.Key(store.Hosts, name)) {
			out.Fields = append(out.Fields, Field{where, "host " + name + " does not exist: create it first"})
		}
	}
	if len(want.Hosts)+len(want.Pairs) == 0 && len(hosts) > schedule.MaxHosts {
		out.Fields = append(out.Fields, Field{"hosts", "too many hosts to measure between all of them: list hosts or pairs"})
	}
	if len(out.Fields) == 0 {
		return nil
	}
	slices.SortFunc(out.Fields, func(a, b Field) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message)) })
	out.Detail = out.Fields[0].Field + ": " + out.Fields[0].Message
	return out
}

// DeleteProbeSchedule deletes the probe schedule.
func (s *Server) DeleteProbeSchedule(w http.ResponseWriter, r *http.Request, _ api.DeleteProbeScheduleParams) {
	s.change(w, r, store.ScheduleKey, func(c *changeRequest) (response, error) {
		if _, err := readExisting(c, store.ScheduleKey, noSchedule(), scheduleDoc); err != nil {
			return response{}, err
		}
		c.tx.Delete(store.ScheduleKey)
		return noContent, nil
	})
}

// probeState is the state of the probe schedule: running measurements and the used budget.
type probeState struct {
	Running []probeRunning `json:"running"`
	Spent   []probeSpent   `json:"spent"`
	Day     string         `json:"day,omitempty"`
	Quiet   bool           `json:"quiet,omitempty"`
}

// probeRunning is a running measurement.
type probeRunning struct {
	ID string `json:"id"`
	schedule.Task
	Began time.Time `json:"began"`
}

// probeSpent is the budget that a host has used today.
type probeSpent struct {
	Host      string `json:"host"`
	UsedBytes int64  `json:"used_bytes"`
}

// GetProbeState shows the running measurements, and the budget that each host has used today.
func (s *Server) GetProbeState(w http.ResponseWriter, r *http.Request) {
	out := probeState{Running: []probeRunning{}, Spent: []probeSpent{}}
	// All reads are at one revision, so that the answer is consistent.
	docs, at, err := s.Store.All(r.Context(), store.Prefix(store.Probing, "runs"), 0)
	runs, err := decodeDocs[store.ProbeRun](docs, err)
	for _, run := range runs {
		out.Running = append(out.Running, probeRunning{run.ID, run.Task, run.Began})
	}
	var want schedule.Schedule
	var there bool
	if err == nil {
		var doc store.Doc
		if doc, there, err = s.Store.Get(r.Context(), store.ScheduleKey, at); err == nil && there {
			err = doc.Into(&want)
		}
	}
	if err == nil && there {
		now := time.Now()
		out.Day, out.Quiet = want.Day(now), want.InQuietHours(now, now)
		docs, _, err = s.Store.All(r.Context(), store.Prefix(store.Probing, "spent"), at)
		for _, d := range docs {
			var l schedule.Ledger
			if err == nil {
				err = d.Into(&l)
			}
			_, name := store.Name(d.Key)
			if spent := l.On(out.Day); spent > 0 {
				out.Spent = append(out.Spent, probeSpent{name[len(name)-1], int64(spent)})
			}
		}
	}
	writeResource(w, r, out, err)
}

// probeResult is the API form of a result.
type probeResult struct {
	ID string `json:"id,omitempty"`
	schedule.Task
	By          string          `json:"by,omitempty"`
	At          time.Time       `json:"at,omitzero"`
	RTT         time.Duration   `json:"rtt_ns,omitempty"`
	Answer      json.RawMessage `json:"answer,omitempty"`
	FromDevices []string        `json:"from_devices,omitempty"`
	ToDevices   []string        `json:"to_devices,omitempty"`
	OwnLimitBps int64           `json:"own_limit_bps,omitempty"`
	Attempted   time.Time       `json:"attempted"`
	Error       string          `json:"error,omitempty"`
}

// probeResultOf returns the API form of a result.
func probeResultOf(r store.ProbeResult) probeResult {
	return probeResult{
		ID: r.ID, Task: r.Task, By: r.By, At: r.At, RTT: r.RTT, Answer: answerOf(r.Answer), FromDevices: r.FromDevices, ToDevices: r.ToDevices,
		OwnLimitBps: int64(r.OwnLimit), Attempted: r.Attempted, Error: r.Error,
	}
}

// answerOf returns the API form of a stored answer, in which the amount that was sent is text. The rest of
// it stays as the agent sent it, which may be of a later version.
func answerOf(stored json.RawMessage) json.RawMessage {
	var answer map[string]json.RawMessage
	var sent unit.Bytes
	if json.Unmarshal(stored, &answer) != nil || json.Unmarshal(answer["bytes"], &sent) != nil {
		return stored
	}
	delete(answer, "bytes")
	answer["sent_bytes"] = strconv.AppendUint(nil, uint64(sent), 10)
	out, err := json.Marshal(answer)
	if err != nil {
		return stored
	}
	return out
}

// ListProbeResults lists the results of the probe schedule.
func (s *Server) ListProbeResults(w http.ResponseWriter, r *http.Request, p api.ListProbeResultsParams) {
	kind := store.Probes
	if valueOr(p.Newest, false) {
		kind = store.Newest
	}
	below := store.Prefix(kind)
	if p.From != nil {
		below = store.Prefix(kind, *p.From)
		if p.To != nil {
			below = store.Prefix(kind, *p.From, *p.To)
		}
	}
	out, err := listPage(r.Context(), s.Store, below, p.After, p.Limit, func(v store.ProbeResult) (probeResult, bool) {
		return probeResultOf(v), (p.To == nil || v.To == *p.To) && (p.Measure == nil || v.Measure == string(*p.Measure)) && (p.Since == nil || !v.Attempted.Before(*p.Since))
	})
	writeResource(w, r, out, err)
}
