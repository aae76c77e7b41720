package limiter

import (
	"headgate/probe"
	"headgate/unit"
)

// Class is a kind of limiter: what binds a path's rate.
type Class string

// The classes. Where there are several, a limiter in the path comes first, then one
// of its ends' schedules, then the sender's processor.
const (
	TBF        Class = "tbf"           // (P, R, b), section 4.2.2
	Xen        Class = "xen"           // (T, delta), section 4.2.2
	Scheduling Class = "vm-scheduling" // active and sleeping periods, section 4.4
	Policer    Class = "policer"       // drops what finds no tokens
	CPU        Class = "cpu"           // the sender's processor is too slow
	None       Class = "none"
)

// Place is where on the way a limiter is.
type Place string

// The places.
const (
	Sender   Place = "sender"
	Path     Place = "path"
	Receiver Place = "receiver"
)

// Result is what limits a path.
type Result struct {
	Class Class `json:"class,omitempty"`
	// Cannot says why there is no class.
	Cannot string `json:"cannot_tell,omitempty"`
	At     Place  `json:"at,omitempty"`
	// Confidence is from 0 to 1: how often such an answer is right.
	Confidence float64 `json:"confidence"`
	// RunnerUp is the class that is next, and Why the reason why it is not the answer.
	RunnerUp Class  `json:"runner_up,omitempty"`
	Why      string `json:"why,omitempty"`

	// Doubts are what was wrong with the trains, or disagreed among them.
	Doubts []string `json:"doubts,omitempty"`

	// Bucket is of classes tbf and policer.
	Bucket *Bucket `json:"bucket,omitempty"`
	// Ticks are of class xen.
	Ticks *Ticks `json:"ticks,omitempty"`
	// Schedules are those of the path's ends, whether or not they are what binds.
	Schedules []Schedule `json:"schedules,omitempty"`
	// Rate is what a sender that is limited by its processor sends.
	Rate *probe.Estimate `json:"rate,omitempty"`
	// Joint is the bound that remains where no limit was met.
	Joint *Joint `json:"joint,omitempty"`
}

// Bucket is (P, R, b) of a token bucket, in bit/s and bytes of layer 2.
type Bucket struct {
	Peak probe.Estimate `json:"peak"`
	Rate probe.Estimate `json:"rate"`
	Size probe.Estimate `json:"size"`
}

// Ticks is (T, delta) of a limiter that gives tokens now and then.
type Ticks struct {
	// Interval is T in ns.
	Interval probe.Estimate `json:"interval_ns"`
	// Packets are delta in full packets, and Tokens in bytes of layer 2.
	Packets probe.Estimate `json:"packets"`
	Tokens  probe.Estimate `json:"tokens"`
	Rate    probe.Estimate `json:"rate"`
	// Seen is how many intervals were.
	Seen int `json:"seen"`
}

// Schedule is a virtual machine's at one end, of section 4.4.1 or 5.3.
type Schedule struct {
	At Place `json:"at"`
	// Active is A and Sleeping S, in ns.
	Active   probe.Estimate `json:"active_ns"`
	Sleeping probe.Estimate `json:"sleeping_ns"`
	// Packets is N, what is sent or taken in one active period.
	Packets probe.Estimate `json:"packets"`
	// Rate is that of equation 4.1 with full packets, in bit/s of layer 2.
	Rate probe.Estimate `json:"rate"`
	// Seen is how many sleeping periods were, and Stolen tells that the hypervisor's
	// own account agrees.
	Seen   int  `json:"seen"`
	Stolen bool `json:"stolen,omitempty"`
}

// Joint is all that trains that met no limit show: the token rate is at least Rate,
// or the bucket and what came into it meanwhile at least Bytes. It assumes that the
// bucket was full.
type Joint struct {
	Rate  float64    `json:"rate"`
	Bytes unit.Bytes `json:"bytes"`
	Took  float64    `json:"seconds"`
}

func cannot(because string) Result { return Result{Cannot: because} }
