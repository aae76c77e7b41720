package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/unit"
)

// QuantumOptions are the options of the engine Quantum, for both directions. The zero value is
// the algorithm of the bwaas seed, with the step of its experiment in proportion to the limit.
type QuantumOptions struct {
	// Quantum is the interval after which the byte counters of all groups restart; 0 means the
	// seed's second. A shorter quantum is the first remedy of chapter VII for the covetous
	// effect. A quantum must hold more than two packets at the limit.
	Quantum time.Duration `json:"quantum_ns,omitempty"`
	// Step is the amount that a group lends at the end of each quantum in which it left as much
	// unused.
	Step Step `json:"step,omitzero"`
	// Overdraft lets packets within their group's guarantee pass although the limit is used up,
	// for one quantum at a time: the second remedy of chapter VII.
	Overdraft bool `json:"overdraft,omitempty"`
}

// MaxQuantum is the longest quantum. Lending adapts over many quanta.
const MaxQuantum = time.Hour

// Step is a number of bytes, or a share of the bytes that the limit allows per quantum. The
// zero Step means "not given": the seed's 1,500 bytes of 100,000, which are 1.5 %.
type Step struct {
	Bytes unit.Bytes
	Share unit.Share
}

// Of converts the step to bytes, where limit is the number of bytes that the limit allows per
// quantum.
func (s Step) Of(limit unit.Bytes) unit.Bytes {
	if s.Share > 0 {
		return unit.Bytes(s.Share.Of(unit.Rate(limit)))
	}
	return s.Bytes
}

// IsZero reports whether the step was not given.
func (s Step) IsZero() bool { return s == Step{} }

// ParseStep parses a size ("1500B") or a share ("1.5%").
func ParseStep(text string) (s Step, err error) {
	text = strings.TrimSpace(text)
	if strings.HasSuffix(text, "%") {
		s.Share, err = unit.ParseShare(text)
	} else if s.Bytes, err = unit.ParseBytes(text); err != nil {
		err = fmt.Errorf("%q is not a step: write bytes such as 1500B, or a share of the limit such as 1.5%%", text)
	}
	if err == nil && s.IsZero() {
		err = errors.New("a step of 0 would never lend anything: write bytes such as 1500B, or a share of the limit such as 1.5%")
	}
	return s, err
}

// ParseQuantum parses the duration of a quantum ("250ms").
func ParseQuantum(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a quantum: write a time such as 1s or 100ms", text)
	case d <= 0 || d > MaxQuantum:
		return 0, fmt.Errorf("a quantum of %v is out of range: write a time above 0 and up to %v, such as 1s or 100ms", d, MaxQuantum)
	}
	return d, nil
}

// MarshalText formats the step for JSON without loss of precision.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the step with ParseStep.
func (s *Step) UnmarshalText(b []byte) (err error) { *s, err = ParseStep(string(b)); return err }

func (s Step) String() string {
	if s.Share > 0 {
		return s.Share.String()
	}
	return s.Bytes.String()
}

// Defaults from the seed (appendix B), in force where an option is not given.
const (
	SeedQuantum = time.Second
	SeedStep    = 15 * unit.Whole / 1000
)

// Describe formats all options for people, with the default where an option is not given. The
// method is not called String, because types that embed QuantumOptions would inherit it.
func (o QuantumOptions) Describe() string {
	if o.Quantum == 0 {
		o.Quantum = SeedQuantum
	}
	if o.Step.IsZero() {
		o.Step.Share = SeedStep
	}
	out := fmt.Sprintf("quantum %v, step %v", o.Quantum, o.Step)
	if o.Overdraft {
		out += ", overdraft"
	}
	return out
}

// given returns the keys of the options that differ from the seed's.
func (o QuantumOptions) given() (keys []string) {
	if o.Quantum != 0 {
		keys = append(keys, "quantum")
	}
	if !o.Step.IsZero() {
		keys = append(keys, "step")
	}
	if o.Overdraft {
		keys = append(keys, "overdraft")
	}
	return keys
}

// check reports options that are not valid for the engine.
func (o QuantumOptions) check(e Engine, add func(where, format string, args ...any)) {
	if e == "" || e == HTB {
		for _, key := range o.given() {
			add(key, "%s applies only to the engine quantum: write engine: quantum, or remove %s", key, key)
		}
		return
	}
	if o.Quantum < 0 || o.Quantum > MaxQuantum {
		add("quantum", "a quantum of %v is out of range: write a time above 0 and up to %v, such as 1s or 100ms", o.Quantum, MaxQuantum)
	}
}
