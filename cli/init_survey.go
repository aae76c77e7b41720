package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/cli/doctor"
	"headgate/shaper"
	"headgate/unit"
)

// initDecision is what becomes of a device.
type initDecision string

const (
	written   initDecision = "written"   // as a document
	commented initDecision = "commented" // as a document that is a comment, until the user does something
	leftOut   initDecision = "left out"
)

// initReport is what init found and decided.
type initReport struct {
	File       string       `json:"file,omitempty"`
	Interfaces []initChoice `json:"interfaces"`
	// Machine is what limits groups on every device; Forbidden tells that not all could be looked at.
	Machine       []doctor.Check `json:"machine,omitempty"`
	Forbidden     bool           `json:"forbidden,omitempty"`
	Configuration string         `json:"configuration,omitempty"`
}

// initChoice is one device, and what was decided.
type initChoice struct {
	Dev      string       `json:"dev"`
	About    string       `json:"about"`
	Decision initDecision `json:"decision"`
	// Why it is left out, or what to know before it is divided all the same.
	Why string `json:"why,omitempty"`
	// Speed is what the link gives, 0 if that is not known; Given if the user said it.
	Speed unit.Rate `json:"speed,omitempty"`
	Given bool      `json:"speed_given,omitempty"`
	Out   unit.Rate `json:"out_limit,omitempty"`
	In    unit.Rate `json:"in_limit,omitempty"`
	// NoIn is why what comes in is not divided.
	NoIn     string         `json:"no_in,omitempty"`
	Findings []doctor.Check `json:"findings,omitempty"`

	mtu     int
	wanted  bool // by name
	blocked bool // by others' traffic control
}

// survey looks at the devices of this machine, or at those that are asked for.
func (a *app) survey(asked []string, given speedFlag) (*initReport, error) {
	all, err := readLinks()
	if err != nil {
		return nil, err
	}
	for _, name := range append(slices.Sorted(maps.Keys(given)), asked...) {
		if !slices.ContainsFunc(all, func(l initLink) bool { return l.name == name }) {
			return nil, fmt.Errorf("%s: %w: write one that \"ip link\" lists", name, shaper.ErrNoDevice)
		}
	}
	r := &initReport{Interfaces: all.choose(asked, given)}
	divided := append(r.names(written), r.names(commented)...)
	if len(divided) == 0 {
		return nil, r.nothing()
	}
	found, err := a.examine(divided, false)
	if err != nil {
		return nil, err
	}
	r.heed(found)
	if len(r.names(leftOut)) == len(r.Interfaces) {
		return nil, r.nothing()
	}
	return r, nil
}

// nothing is the error where no device can be divided.
func (r *initReport) nothing() error {
	var b strings.Builder
	for _, c := range r.Interfaces {
		fmt.Fprintf(&b, "\n  %s: %s", c.Dev, c.Why)
	}
	return fmt.Errorf("there is no device here that leads to other machines and can be divided:%s\nmake one ready, or name the one that you mean with --dev", b.String())
}

// choose decides by what the devices are, and what the user says of them.
func (all initLinks) choose(asked []string, given speedFlag) (out []initChoice) {
	for _, l := range all {
		speed, known := given[l.name]
		c := initChoice{Dev: l.name, About: l.about(), Decision: written, Why: all.leftOut(l), Speed: speed, Given: known, mtu: l.mtu}
		if c.wanted = known || slices.Contains(asked, l.name); len(asked) > 0 && !c.wanted {
			continue
		}
		if !known {
			c.Speed = all.speed(l)
		}
		switch {
		case c.Why != "" && !c.wanted:
			c.Decision = leftOut
		case c.Speed == 0:
			c.Decision = commented
		}
		out = append(out, c)
	}
	return out
}

// speed is a link's, or that of the device that carries what it does.
func (all initLinks) speed(l initLink) unit.Rate {
	if lower, ok := all.at(l.lower); ok && l.speed == 0 {
		return all.speed(lower)
	}
	return l.speed
}

// heed takes what doctor found into account.
func (r *initReport) heed(found doctor.Report) {
	r.Forbidden = found.Forbidden
	for _, c := range found.Checks {
		// The rest is for experiments.
		matters := c.Needed || slices.Contains([]string{"fq_codel", "queue measurement (BTF, tp_btf)", "timers", "cgroup v2"}, c.Name)
		if c.About == doctor.Machine && falls(c) && matters {
			r.Machine = append(r.Machine, c)
		}
	}
	for i := range r.Interfaces {
		if r.Interfaces[i].Decision != leftOut {
			r.Interfaces[i].heed(found)
		}
	}
}

// heed takes what doctor found of the device into account, and limits it.
func (c *initChoice) heed(found doctor.Report) {
	const roomOut, roomIn = `room for "out"`, `room for "in"`
	for _, check := range found.Checks {
		said := check.Name == "speed" || check.Name == roomOut || check.Name == roomIn
		if check.About == c.Dev && falls(check) && !said {
			c.Findings = append(c.Findings, check)
		}
	}
	if ifb, ok := found.Of(doctor.Machine, "IFB"); ok && ifb.State == doctor.Missing {
		c.NoIn = "this kernel has no IFB, on which it would be divided"
	}
	if in, ok := found.Of(c.Dev, roomIn); ok && in.State == doctor.Missing {
		c.NoIn = in.Found
	}
	if groups, ok := found.Of(c.Dev, "groups"); ok && (groups.State == doctor.OK || groups.State == doctor.Limited) {
		c.Why = fmt.Sprintf("it has groups, which \"headgate show --dev %s\" prints", c.Dev)
		if !c.wanted {
			c.Decision = leftOut
			return
		}
		c.Why += ": this replaces them"
	}
	if out, ok := found.Of(c.Dev, roomOut); ok && out.State == doctor.Missing {
		if c.Why, c.Decision, c.blocked = out.Found, commented, true; !c.wanted {
			c.Decision = leftOut
			return
		}
	}
	c.limit()
}

// falls tells whether something was found to be less than it could be.
func falls(c doctor.Check) bool { return c.State == doctor.Limited || c.State == doctor.Missing }
