package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/shaper"
	"headgate/shaper/attach"
	"headgate/unit"
)

// usualCeiling is what one queue on one lock gets through on two virtual CPUs,
// in packets a second (measure.go, many runs), for those who do not measure.
const usualCeiling = 0.4e6

// device looks at one device.
func device(name string, o Options, measured *Ceiling) ([]Check, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) || err != nil && len(name) >= unix.IFNAMSIZ {
		return []Check{{
			About: name, Name: "device", State: Missing, Needed: true, Means: "there is nothing to enforce groups on now",
			Remedy: "write one that \"ip link\" lists; the agent waits for devices that come later",
		}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	t, err := openEthtool(name)
	if err != nil {
		return nil, err
	}
	defer t.close()
	checks := []Check{
		deviceState(l, t.driver()),
		speed(l, t),
		queues(l, t, measured),
		offloads(l, t),
		{About: name, Name: "MTU", State: OK, Found: fmt.Sprint(l.Attrs().MTU), Means: "queues are sized for it; apply again, or run the agent, after changing it"},
	}
	checks = append(append(checks, earlier(l)...), passers(l)...)
	return append(checks, inTheWay(name, o)...), nil
}

// earlier are eBPF programs that see packets before any filter does.
func earlier(l netlink.Link) (out []Check) {
	limited := func(name, found, means string) {
		out = append(out, Check{About: l.Attrs().Name, Name: name, State: Limited, Found: found, Means: means, Remedy: "none, if that is meant"})
	}
	if x := l.Attrs().Xdp; x != nil && x.Attached {
		limited("XDP", fmt.Sprintf("program %d", x.ProgId), "packets that it drops, answers or redirects belong to no group, and what XDP redirects to this device passes no qdisc")
	}
	sooner, err := attach.Sooner(l.Attrs().Name)
	if err != nil {
		return out // the device went meanwhile
	}
	become := [2]string{
		attach.Egress:  "get at most a quarter of the limit, together with control traffic (engine htb), or are not limited",
		attach.Ingress: "are not limited",
	}
	for side, name := range [2]string{attach.Egress: "tcx egress", attach.Ingress: "tcx ingress"} {
		for _, what := range sooner[side] {
			limited(name, strings.TrimPrefix(what, name+" "), "packets that it drops, redirects or passes, other than by TCX_NEXT, belong to no group; passed ones "+become[side])
		}
	}
	return out
}

func deviceState(l netlink.Link, driver string) Check {
	a := l.Attrs()
	c := Check{About: a.Name, Name: "device", State: OK, Means: "it exists"}
	var found []string
	if l.Type() != "device" { // the kernel's word for what is of no special kind
		found = append(found, l.Type())
	}
	if driver != "" && driver != l.Type() {
		found = append(found, "driver "+driver)
	}
	if a.OperState != netlink.OperUnknown {
		found = append(found, a.OperState.String())
	}
	c.Found = strings.Join(found, ", ")
	if a.OperState == netlink.OperDown || a.OperState == netlink.OperLowerLayerDown || a.OperState == netlink.OperNotPresent {
		c.State, c.Means, c.Remedy = Limited, "groups can be made, but nothing is carried now", "ip link set "+a.Name+" up, and look at the cable or the other end"
	}
	if a.MasterIndex != 0 {
		c.Found += ", part of a bridge or bond"
	}
	return c
}

// hardware tells whether something real limits the device: a veth or tap invents
// its speed.
func hardware(l netlink.Link) bool { return l.Attrs().ParentDev != "" }

// Speed is what the link can carry, false if it is not known or invented.
func Speed(l netlink.Link) (unit.Rate, bool) {
	if !hardware(l) {
		return 0, false
	}
	t, err := openEthtool(l.Attrs().Name)
	if err != nil {
		return 0, false
	}
	defer t.close()
	return t.speed()
}

func speed(l netlink.Link, t *ethtool) Check {
	c := Check{About: l.Attrs().Name, Name: "speed", State: OK}
	rate, known := t.speed()
	switch {
	case !hardware(l):
		c.Found, c.Means = "virtual", "it has no speed of its own: write the limit that you want it to have"
	case known:
		c.Found, c.Means = rate.String(), "limits are compared with it: \"out\" at most that, \"in\" below it"
	default:
		c.State, c.Found, c.Means = Limited, "unknown", "limits cannot be compared with it; one that is too high divides nothing"
		c.Remedy = "write the rate that your provider promises, or better what you measured"
	}
	return c
}

func queues(l netlink.Link, t *ethtool, measured *Ceiling) Check {
	n := t.txQueues()
	if n == 0 {
		n = l.Attrs().NumTxQueues
	}
	c := Check{About: l.Attrs().Name, Name: "transmit queues", State: OK, Found: fmt.Sprint(n)}
	ceiling := fmt.Sprintf("some %s packets a second on two virtual CPUs (yours: --measure)", millions(usualCeiling))
	if measured != nil {
		ceiling = fmt.Sprintf("%s packets or %s a second, as measured here", millions(measured.PacketsPerSecond), gigabits(measured.Bandwidth))
	}
	if n <= 1 {
		c.Means = "one queue, one lock, with groups or without: up to " + ceiling
		return c
	}
	c.State = Limited
	c.Means = fmt.Sprintf("all %d share one HTB and its lock: CPUs that sent side by side wait for each other, so the whole device gets through %s", n, ceiling)
	c.Remedy = "none is needed below that; above it, divide VLANs, virtual functions or veths rather than the device"
	return c
}

func millions(n float64) string { return fmt.Sprintf("%.2g million", n/1e6) }

func gigabits(r unit.Rate) string { return fmt.Sprintf("%.3g Gbit", float64(r)/float64(unit.Gbit)) }

func offloads(l netlink.Link, t *ethtool) Check {
	c := Check{About: t.dev, Name: "offloads", State: OK, Means: "up to 64 KB are classified and queued as one packet"}
	var on, off, remedy []string
	for _, f := range []struct {
		name    string
		cmd     uint32
		matters bool
	}{{"TSO", ethtoolGTSO, true}, {"GSO", ethtoolGGSO, true}, {"GRO", ethtoolGGRO, hardware(l)}} {
		if v, err := t.value(f.cmd); err == nil && v != 0 {
			on = append(on, f.name)
			continue
		}
		off = append(off, f.name)
		if f.matters {
			remedy = append(remedy, strings.ToLower(f.name)+" on")
		}
	}
	c.Found = strings.Join(on, " ") + " on"
	if len(on) == 0 {
		c.Found = "none on"
	} else if len(off) > 0 {
		c.Found += ", " + strings.Join(off, " ") + " off"
	}
	if len(remedy) > 0 {
		c.State, c.Means = Limited, "more frames are classified and queued one by one: less bandwidth for the same CPU, the same guarantees"
		c.Remedy = fmt.Sprintf("ethtool -K %s %s, unless they are off for a reason", t.dev, strings.Join(remedy, " "))
	}
	return c
}

// inTheWay asks the engine what it would run into.
func inTheWay(dev string, o Options) []Check {
	state, err := o.Observe(dev)
	switch {
	case err == nil:
		c := Check{About: dev, Name: "groups", State: OK, Found: "in force, by " + string(state.Engine), Means: "headgate show prints them"}
		if len(state.Drift) > 0 {
			c.State, c.Means, c.Remedy = Limited, "another program changed them: "+state.Drift[0].String(), "headgate apply, or run the agent"
		}
		return append([]Check{c}, beside(dev, state.Foreign)...)
	case !errors.Is(err, shaper.ErrNotShaped):
		return []Check{tried("groups", err, "whether groups are in force", "what is in force cannot be read", "report it with this text").about(dev).needed()}
	}
	var out []Check
	for _, d := range []struct {
		name    string
		out, in bool
	}{{"room for \"out\"", true, false}, {"room for \"in\"", false, true}} {
		p, err := simplePlan(dev, unit.Gbit, d.out, d.in)
		if err == nil {
			_, err = o.Engine.Diff(p)
		}
		out = append(out, tried(d.name, err, "nothing is in the way", "groups are refused there, so as not to break what is not ours",
			"remove what is named, or leave the device to it").about(dev).needed())
	}
	state, _ = o.Engine.Observe(dev) // it names what is not ours also where nothing is
	return append(out, beside(dev, state.Foreign)...)
}

// beside are others' things that stay where they are.
func beside(dev string, foreign []string) (out []Check) {
	for _, what := range foreign {
		if attach.InTheWay(what) {
			out = append(out, Check{
				About: dev, Name: "not ours", State: Limited, Found: what, Means: "packets of the way in pass it by, or pass it twice, while it is redirected",
				Remedy: "remove it, or run \"headgate clear --dev " + dev + "\"",
			})
			continue
		}
		out = append(out, Check{
			About: dev, Name: "not ours", State: OK, Found: what, Means: "it stays, and runs after Headgate's classifier",
		})
	}
	return out
}

func (c Check) about(dev string) Check { c.About = dev; return c }
