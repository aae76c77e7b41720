package hostsurvey

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Decision is how a device appears in the configuration.
type Decision string

// The decisions.
const (
	Written   Decision = "written"   // as a document
	Commented Decision = "commented" // as a commented-out document, which the user has to complete
	LeftOut   Decision = "left out"
)

// Report is the result of a survey.
type Report struct {
	// File is the file that has the configuration, Configuration its text. The caller sets either.
	File       string      `json:"file,omitempty"`
	Interfaces []Interface `json:"interfaces"`
	// Findings is the findings that limit groups on every device. Forbidden is set if permissions
	// were missing for some checks.
	Findings      []doctor.Check `json:"machine,omitempty"`
	Forbidden     bool           `json:"forbidden,omitempty"`
	Configuration string         `json:"configuration,omitempty"`
}

// Interface is one device and the decision about it.
type Interface struct {
	Dev      string   `json:"dev"`
	About    string   `json:"about"`
	Decision Decision `json:"decision"`
	// Why is the reason why the device is left out, or a warning for a device that the user named.
	Why string `json:"why,omitempty"`
	// Speed is the rate of the link, 0 if unknown. SpeedGiven is set if the user set Speed.
	Speed      unit.Rate `json:"speed,omitempty"`
	SpeedGiven bool      `json:"speed_given,omitempty"`
	Out        unit.Rate `json:"out_limit,omitempty"`
	In         unit.Rate `json:"in_limit,omitempty"`
	// NoIn is the reason why ingress is not shaped.
	NoIn     string         `json:"no_in,omitempty"`
	Findings []doctor.Check `json:"findings,omitempty"`

	mtu     int
	wanted  bool // named by the user
	blocked bool // by foreign traffic control
}

// Options are what a survey needs of the program.
type Options struct {
	// Devices are the kernel names of the only devices to survey; all if it is empty.
	Devices []string
	// Speeds are the rates of links that the user set, by kernel name.
	Speeds map[string]unit.Rate
	// Examine returns doctor's findings about this machine and devices.
	Examine func(devices []string) (doctor.Report, error)
}

// Run surveys the devices of this network namespace. It returns an error if none of them can be
// shaped.
func Run(o Options) (*Report, error) {
	all, err := netdev.List()
	if err != nil {
		return nil, err
	}
	for _, name := range append(slices.Sorted(maps.Keys(o.Speeds)), o.Devices...) {
		if !slices.ContainsFunc(all, func(l netdev.Device) bool { return l.Name == name }) {
			return nil, fmt.Errorf("%s: %w: choose one that \"ip link\" lists", name, shaper.ErrNoDevice)
		}
	}
	r := &Report{Interfaces: choose(all, o.Devices, o.Speeds)}
	divided := append(r.Names(Written), r.Names(Commented)...)
	if len(divided) == 0 {
		return nil, r.errNoDevice()
	}
	found, err := o.Examine(divided)
	if err != nil {
		return nil, err
	}
	r.addFindings(found)
	if len(r.Names(LeftOut)) == len(r.Interfaces) {
		return nil, r.errNoDevice()
	}
	return r, nil
}

// Names returns the devices with decision d.
func (r *Report) Names(d Decision) (names []string) {
	for _, i := range r.Interfaces {
		if i.Decision == d {
			names = append(names, i.Dev)
		}
	}
	return names
}

// errNoDevice returns the error for a machine on which no device can be shaped.
func (r *Report) errNoDevice() error {
	var b strings.Builder
	for _, c := range r.Interfaces {
		fmt.Fprintf(&b, "\n  %s: %s", c.Dev, c.Why)
	}
	return fmt.Errorf("no device of this machine connects to other machines and can be shaped:%s\nenable one, or select a device with --dev", b.String())
}

// choose decides about each device from its type and the user's flags.
func choose(all netdev.Devices, asked []string, given map[string]unit.Rate) (out []Interface) {
	for _, l := range all {
		speed, known := given[l.Name]
		c := Interface{Dev: l.Name, About: about(l), Decision: Written, Why: leftOut(all, l), Speed: speed, SpeedGiven: known, mtu: l.MTU}
		if c.wanted = known || slices.Contains(asked, l.Name); len(asked) > 0 && !c.wanted {
			continue
		}
		if !known {
			c.Speed = linkSpeed(all, l)
		}
		switch {
		case c.Why != "" && !c.wanted:
			c.Decision = LeftOut
		case c.Speed == 0:
			c.Decision = Commented
		}
		out = append(out, c)
	}
	return out
}

// linkSpeed returns the speed of a device's link, or that of the device below.
func linkSpeed(all netdev.Devices, l netdev.Device) unit.Rate {
	if lower, ok := all.At(l.Lower); ok && l.Speed == 0 {
		return linkSpeed(all, lower)
	}
	return l.Speed
}

// addFindings adds doctor's findings to the report.
func (r *Report) addFindings(found doctor.Report) {
	r.Forbidden = found.NotPermitted
	for _, c := range found.Checks {
		// Other checks concern only experiments.
		matters := c.Needed || slices.Contains([]string{"fq_codel", "queue measurement (BTF, tp_btf)", "timers", "cgroup v2"}, c.Name)
		if c.About == doctor.Machine && isProblem(c) && matters {
			r.Findings = append(r.Findings, c)
		}
	}
	for i := range r.Interfaces {
		if r.Interfaces[i].Decision != LeftOut {
			r.Interfaces[i].heed(found)
		}
	}
}

// heed applies doctor's findings about the device, and sets the limits.
func (c *Interface) heed(found doctor.Report) {
	const roomOut, roomIn = `traffic control "out"`, `traffic control "in"`
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
			c.Decision = LeftOut
			return
		}
		c.Why += "; this document replaces them"
	}
	if out, ok := found.Of(c.Dev, roomOut); ok && out.State == doctor.Missing {
		if c.Why, c.Decision, c.blocked = out.Found, Commented, true; !c.wanted {
			c.Decision = LeftOut
			return
		}
	}
	c.limit()
}

// isProblem reports whether a check found a limitation or something missing.
func isProblem(c doctor.Check) bool { return c.State == doctor.Limited || c.State == doctor.Missing }
