package bench

import (
	"fmt"
	"strconv"
)

// Target is the value that a claim must reach.
type Target struct {
	Op    string // "<=", ">=" or Measured
	Value float64
	Unit  string
}

// Measured is the Op of a claim without a limit: any value meets the target.
const Measured = "measured"

// Met reports whether v meets the target.
func (t Target) Met(v float64) bool {
	switch t.Op {
	case "<=":
		return v <= t.Value
	case ">=":
		return v >= t.Value
	case Measured:
		return true
	}
	panic(fmt.Sprintf("bench: a target cannot be %q", t.Op))
}

// String returns the target without its unit: "<= 0.5".
func (t Target) String() string {
	if t.Op == Measured {
		return t.Op
	}
	return t.Op + " " + strconv.FormatFloat(t.Value, 'f', -1, 64)
}

// MarshalText writes the target as its String; the claim has the unit.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (t *Target) UnmarshalText(b []byte) error {
	if string(b) == Measured {
		*t = Target{Op: Measured}
		return nil
	}
	if _, err := fmt.Sscanf(string(b), "%s %g", &t.Op, &t.Value); err != nil {
		return fmt.Errorf("%q is not a target: %w", b, err)
	}
	return nil
}
