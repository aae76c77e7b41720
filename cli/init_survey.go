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

// initDecision is what init does with a device.
type initDecision string

const (
	written   initDecision = "written"   // as a document
	commented initDecision = "commented" // as a commented-out document, which the user has to complete
	leftOut   initDecision = "left out"
)

// initReport is the result of init.
type initReport struct {
	File       string       `json:"file,omitempty"`
	Interfaces []initChoice `json:"interfaces"`
	// Findings is the findings that limit groups on every device. Forbidden is set if permissions
	// were missing for some checks.
	Findings      []doctor.Check `json:"machine,omitempty"`
	Forbidden     bool           `json:"forbidden,omitempty"`
	Configuration string         `json:"configuration,omitempty"`
}

// initChoice is one device and the decision about it.
type initChoice struct {
	Dev      string       `json:"dev"`
	About    string       `json:"about"`
	Decision initDecision `json:"decision"`
	// Why is the reason why the device is left out, or a warning for a device that the user named.
	Why string `json:"why,omitempty"`
	// Speed is the rate of the link, 0 if unknown. Given is set if the user set Speed.
	Speed unit.Rate `json:"speed,omitempty"`
	Given bool      `json:"speed_given,omitempty"`
	Out   unit.Rate `json:"out_limit,omitempty"`
	In    unit.Rate `json:"in_limit,omitempty"`
	// NoIn is the reason why ingress is not shaped.
	NoIn     string         `json:"no_in,omitempty"`
	Findings []doctor.Check `json:"findings,omitempty"`

	mtu     int
	wanted  bool // named by the user
	blocked bool // by foreign traffic control
}

// survey examines the devices of this machine, or only those in asked.
func (a *app) survey(asked []string, given speedFlag) (*initReport, error) {
	all, err := readLinks()
	if err != nil {
		return nil, err
	}
	for _, name := range append(slices.Sorted(maps.Keys(given)), asked...) {
		if !slices.ContainsFunc(all, func(l initLink) bool { return l.name == name }) {
			return nil, fmt.Errorf("%s: %w: choose one that \"ip link\" lists", name, shaper.ErrNoDevice)
		}
	}
	r := &initReport{Interfaces: all.choose(asked, given)}
	divided := append(r.names(written), r.names(commented)...)
	if len(divided) == 0 {
		return nil, r.errNoDevice()
	}
	found, err := a.examine(divided, false)
	if err != nil {
		return nil, err
	}
	r.addFindings(found)
	if len(r.names(leftOut)) == len(r.Interfaces) {
		return nil, r.errNoDevice()
	}
	return r, nil
}

// errNoDevice returns the error for a machine on which no device can be shaped.
func (r *initReport) errNoDevice() error {
	var b strings.Builder
	for _, c := range r.Interfaces {
		fmt.Fprintf(&b, "\n  %s: %s", c.Dev, c.Why)
	}
	return fmt.Errorf("no device of this machine connects to other machines and can be shaped:%s\nenable one, or select a device with --dev", b.String())
}

// choose decides about each device from its type and the user's flags.
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

// speed returns the speed of a link, or that of the device below.
func (all initLinks) speed(l initLink) unit.Rate {
	if lower, ok := all.at(l.lower); ok && l.speed == 0 {
		return all.speed(lower)
	}
	return l.speed
}

// addFindings adds doctor's findings to the report.
func (r *initReport) addFindings(found doctor.Report) {
	r.Forbidden = found.NotPermitted
	for _, c := range found.Checks {
		// Other checks concern only experiments.
		matters := c.Needed || slices.Contains([]string{"fq_codel", "queue measurement (BTF, tp_btf)", "timers", "cgroup v2"}, c.Name)
		if c.About == doctor.Machine && isProblem(c) && matters {
			r.Findings = append(r.Findings, c)
		}
	}
	for i := range r.Interfaces {
		if r.Interfaces[i].Decision != leftOut {
			r.Interfaces[i].heed(found)
		}
	}
}

// heed applies doctor's findings about the device, and sets the limits.
func (c *initChoice) heed(found doctor.Report) {
	const roomOut, roomIn = `room for "out"`, `room for "in"`
	for _, check := range found.Checks {
		said := check.Name == "speed" || check.Name == roomOut || check.Name == roomIn
		if check.About == c.Dev && isProblem(check) && !said {
			c.Findings = append(c.Findings, check)
		}
	}
	if ifb, ok := found.Of(doctor.Machine, "IFB"); ok && ifb.State == doctor.Missing {
		c.NoIn = "this kernel has no IFB device, which shaping ingress needs"
	}
	if in, ok := found.Of(c.Dev, roomIn); ok && in.State == doctor.Missing {
		c.NoIn = in.Found
	}
	if groups, ok := found.Of(c.Dev, "groups"); ok && (groups.State == doctor.OK || groups.State == doctor.Limited) {
		c.Why = fmt.Sprintf("already has groups: see \"headgate show --dev %s\"", c.Dev)
		if !c.wanted {
			c.Decision = leftOut
			return
		}
		c.Why += "; this document replaces them"
	}
	if out, ok := found.Of(c.Dev, roomOut); ok && out.State == doctor.Missing {
		if c.Why, c.Decision, c.blocked = out.Found, commented, true; !c.wanted {
			c.Decision = leftOut
			return
		}
	}
	c.limit()
}

// isProblem reports whether a check found a limitation or something missing.
func isProblem(c doctor.Check) bool { return c.State == doctor.Limited || c.State == doctor.Missing }
