package doctor

import (
	"errors"
	"os"
	"syscall"

	"headgate/shaper"
)

// State is what a check found.
type State string

// The states.
const (
	OK      State = "ok"
	Limited State = "limited" // it works, with the loss that Means tells
	Missing State = "missing"
	Unknown State = "unknown" // we were not permitted to look
)

// Check is one thing that was looked at.
type Check struct {
	About  string `json:"about"` // "machine", or a device
	Name   string `json:"name"`
	State  State  `json:"state"`
	Found  string `json:"found,omitempty"`  // what there is
	Means  string `json:"means"`            // what that is to the user
	Remedy string `json:"remedy,omitempty"` // what to do about it
	// Needed tells that without it groups cannot be enforced.
	Needed bool `json:"needed"`
}

// Report is all checks, in the order in which a person would want them.
type Report struct {
	// OK tells that groups can be enforced: nothing needed is missing.
	OK      bool     `json:"ok"`
	Checks  []Check  `json:"checks"`
	Ceiling *Ceiling `json:"ceiling,omitempty"`
	// Forbidden tells that something needed could not be looked at.
	Forbidden bool `json:"forbidden"`
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
			r.OK, r.Forbidden = false, true
		}
	}
}

// Of is the check of that name about a device or "machine".
func (r Report) Of(about, name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.About == about && c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Machine is what checks are about that are about no device.
const Machine = "machine"

// tried makes a check of an attempt: gain is what it is for, loss what is lost
// without it.
func tried(name string, err error, gain, loss, remedy string) Check {
	c := Check{About: Machine, Name: name, State: OK, Means: gain}
	switch {
	case err == nil:
	case forbidden(err):
		c.State, c.Found, c.Remedy = Unknown, "not permitted to look", "run it as root"
	default:
		c.State, c.Found, c.Means, c.Remedy = Missing, err.Error(), loss, remedy
	}
	return c
}

func (c Check) needed() Check { c.Needed = true; return c }

// onlyLimits makes something missing a limit.
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
