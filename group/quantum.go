package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate/unit"
)

// QuantumOptions are what the engine Quantum leaves to choose. The zero value is the
// bwaas seed's algorithm, with the step of its experiment in proportion to the limit.
// They are for both directions.
type QuantumOptions struct {
	// Quantum is the time after which the bytes that each group has used are counted
	// anew; 0 is the seed's second. A shorter one is the first remedy of chapter VII for
	// the covetous effect, and must hold more than two packets of the limit.
	Quantum time.Duration `json:"quantum_ns,omitempty"`
	// Step is what a group that leaves as much unused lends at the end of each quantum.
	Step Step `json:"step,omitzero"`
	// Overdraft lets packets inside their group's guarantee pass although the limit is
	// used up, for one quantum at a time: the second remedy of chapter VII.
	Overdraft bool `json:"overdraft,omitempty"`
}

// MaxQuantum is the longest quantum. What is lent takes many quanta to be lent.
const MaxQuantum = time.Hour

// Step is a number of bytes, or a share of what the limit gives in a quantum. The zero
// Step is "not given": the seed's 1,500 bytes of 100,000, which are 1.5 %.
type Step struct {
	Bytes unit.Bytes
	Share unit.Share
}

// Of is the step in bytes where the limit gives so much in a quantum.
func (s Step) Of(limit unit.Bytes) unit.Bytes {
	if s.Share > 0 {
		return unit.Bytes(s.Share.Of(unit.Rate(limit)))
	}
	return s.Bytes
}

// IsZero tells whether the step was not given.
func (s Step) IsZero() bool { return s == Step{} }

// ParseStep reads a size ("1500B") or a share ("1.5%").
func ParseStep(text string) (s Step, err error) {
	text = strings.TrimSpace(text)
	if strings.HasSuffix(text, "%") {
		s.Share, err = unit.ParseShare(text)
	} else if s.Bytes, err = unit.ParseBytes(text); err != nil {
		err = fmt.Errorf("%q is not a step: write bytes such as 1500B, or a share of the limit such as 1.5%%", text)
	}
	if err == nil && s.IsZero() {
		err = errors.New("a step of nothing would never lend anything: write bytes such as 1500B, or a share of the limit such as 1.5%")
	}
	return s, err
}

// ParseQuantum reads the length of a quantum ("250ms").
func ParseQuantum(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a quantum: write a time such as 1s or 100ms", text)
	case d <= 0 || d > MaxQuantum:
		return 0, fmt.Errorf("a quantum of %v is not possible: write a time up to %v, such as 1s or 100ms", d, MaxQuantum)
	}
	return d, nil
}

// MarshalText prints the exact form, for JSON.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseStep.
func (s *Step) UnmarshalText(b []byte) (err error) { *s, err = ParseStep(string(b)); return err }

func (s Step) String() string {
	if s.Share > 0 {
		return s.Share.String()
	}
	return s.Bytes.String()
}

// From the seed (appendix B): what is in force where an option is not given.
const (
	SeedQuantum = time.Second
	SeedStep    = 15 * unit.Whole / 1000
)

// Describe is all of them in words, with what is in force where one is not given. (A
// String would become the text of all that embeds them.)
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

// given are the keys of the options that are not the seed's.
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

// check adds what is wrong with them for an engine.
func (o QuantumOptions) check(e Engine, add func(where, format string, args ...any)) {
	if e == "" || e == HTB {
		for _, key := range o.given() {
			add(key, "%s is for the engine quantum alone: write engine: quantum, or leave %s out", key, key)
		}
		return
	}
	if o.Quantum < 0 || o.Quantum > MaxQuantum {
		add("quantum", "a quantum of %v is not possible: write a time up to %v, such as 1s or 100ms", o.Quantum, MaxQuantum)
	}
}
