package limiter

import (
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Class is a limiter type: what limits the rate of a path.
type Class string

// The limiter types. If a path has several, the class is the first of: a limiter on the
// path, a schedule of an end, the sender's processor.
const (
	TBF        Class = "tbf"           // (P, R, b), section 4.2.2
	Xen        Class = "xen"           // (T, delta), section 4.2.2
	Scheduling Class = "vm-scheduling" // active and sleeping periods, section 4.4
	Policer    Class = "policer"       // drops packets that find no tokens
	CPU        Class = "cpu"           // the sender's processor is too slow
	None       Class = "none"
)

// Place is the position of a limiter.
type Place string

// The positions.
const (
	Sender   Place = "sender"
	Path     Place = "path"
	Receiver Place = "receiver"
)

// Result is the limiter of a path.
type Result struct {
	Class Class `json:"class,omitempty"`
	// Cannot is the reason why there is no class.
	Cannot string `json:"cannot_tell,omitempty"`
	At     Place  `json:"at,omitempty"`
	// Confidence is the probability that the result is correct, from 0 to 1.
	Confidence float64 `json:"confidence"`
	// RunnerUp is the second most likely class, and Why the reason against it.
	RunnerUp Class  `json:"runner_up,omitempty"`
	Why      string `json:"why,omitempty"`

	// Doubts are faults of the trains and contradictions between them.
	Doubts []string `json:"doubts,omitempty"`

	// Bucket is set for the classes tbf and policer.
	Bucket *Bucket `json:"bucket,omitempty"`
	// Ticks is set for the class xen.
	Ticks *Ticks `json:"ticks,omitempty"`
	// Schedules are those of the path's ends, whether or not they limit the rate.
	Schedules []Schedule `json:"schedules,omitempty"`
	// Rate is the rate of a sender that its processor limits.
	Rate *probe.Estimate `json:"rate,omitempty"`
	// Held is, for the class none, the layer 2 bytes of the longest train that met no limiter: one whose bucket holds more did not show.
	Held unit.Bytes `json:"held_bytes,omitempty"`
	// Joint is the remaining bound if no limit was found.
	Joint *Joint `json:"joint,omitempty"`
}

// Bucket is (P, R, b) of a token bucket, in bit/s and bytes of layer 2.
type Bucket struct {
	Peak probe.Estimate `json:"peak"`
	Rate probe.Estimate `json:"rate"`
	Size probe.Estimate `json:"size"`
}

// Ticks is (T, delta) of a limiter that grants tokens at intervals.
type Ticks struct {
	// Interval is T in ns.
	Interval probe.Estimate `json:"interval_ns"`
	// Packets is delta in full-size packets, Tokens is delta in bytes of layer 2.
	Packets probe.Estimate `json:"packets"`
	Tokens  probe.Estimate `json:"tokens"`
	Rate    probe.Estimate `json:"rate"`
	// Seen is the number of intervals that were observed.
	Seen int `json:"seen"`
}

// Schedule is the schedule of a virtual machine at one end (4.4.1 or 5.3).
type Schedule struct {
	At Place `json:"at"`
	// Active is A and Sleeping is S, in ns.
	Active   probe.Estimate `json:"active_ns"`
	Sleeping probe.Estimate `json:"sleeping_ns"`
	// Packets is N, the packets sent or received in one active period.
	Packets probe.Estimate `json:"packets"`
	// Rate is the rate of equation 4.1 with full-size packets, in bit/s of layer 2.
	Rate probe.Estimate `json:"rate"`
	// Seen is the number of sleeping periods that were observed. Stolen is set if the
	// hypervisor's steal time agrees.
	Seen   int  `json:"seen"`
	Stolen bool `json:"stolen,omitempty"`
}

// Joint is the result of trains that found no limit: the token rate is at least Rate, or
// the bucket size and the tokens that arrived during the train total at least Bytes.
// Joint assumes that the bucket was full before the train.
type Joint struct {
	Rate  float64    `json:"rate"`
	Bytes unit.Bytes `json:"bytes"`
	Took  float64    `json:"seconds"`
}

func cannot(because string) Result { return Result{Cannot: because} }
