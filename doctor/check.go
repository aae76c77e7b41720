package doctor

import (
	"errors"
	"os"
	"syscall"

	"headgate.dev/headgate/shaper"
)

// State is the result of a check.
type State string

// The states.
const (
	OK      State = "ok"
	Limited State = "limited" // works with the restriction in Means
	Missing State = "missing"
	Unknown State = "unknown" // could not be checked, mostly for lack of privileges
)

// Check is one check and its result.
type Check struct {
	About   string `json:"about"` // "machine", "fabric", "fabric, bridge NAME", or a device
	Name    string `json:"name"`
	State   State  `json:"state"`
	Found   string `json:"found,omitempty"`  // what was detected
	Meaning string `json:"means"`            // the consequence for the user
	Remedy  string `json:"remedy,omitempty"` // what to do about it
	// Needed means that groups cannot be enforced unless this check passes.
	Needed bool `json:"needed"`
}

// Report has all checks, in the order in which they are printed.
type Report struct {
	// OK means that groups can be enforced: all needed checks passed.
	OK         bool     `json:"ok"`
	Checks     []Check  `json:"checks"`
	Throughput *Ceiling `json:"ceiling,omitempty"`
	// NotPermitted means that the state of a needed check is Unknown.
	NotPermitted bool `json:"forbidden"`
}

func (r *Report) add(c ...Check) { r.Checks = append(r.Checks, c...) }

func (r *Report) conclude() {
	r.OK = true
	for _, c := range r.Checks {
		switch {
		case !c.Needed:
		case c.State == Missing:
			r.OK = false
		case c.State == Unknown:
			r.OK, r.NotPermitted = false, true
		}
	}
}

// Of returns the check with a name about a device or Machine.
func (r Report) Of(about, name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.About == about && c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Machine is the value of About for checks of the whole machine.
const Machine = "machine"

// checkOf returns the check for an attempt that ended with err. Means is gain if the attempt
// succeeded, and loss if it failed.
func checkOf(name string, err error, gain, loss, remedy string) Check {
	c := Check{About: Machine, Name: name, State: OK, Meaning: gain}
	switch {
	case err == nil:
	case forbidden(err):
		c.State, c.Found, c.Remedy = Unknown, "not permitted", "run doctor as root"
	default:
		c.State, c.Found, c.Meaning, c.Remedy = Missing, err.Error(), loss, remedy
	}
	return c
}

func (c Check) needed() Check { c.Needed = true; return c }

// onlyLimits changes the state Missing to Limited.
func (c Check) onlyLimits() Check {
	if c.State == Missing {
		c.State = Limited
	}
	return c
}

func (c Check) found(what string) Check {
	if c.Found == "" {
		c.Found = what
	}
	return c
}

func forbidden(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, os.ErrPermission) ||
		errors.Is(err, shaper.ErrPermission)
}
