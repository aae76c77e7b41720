package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/unit"
)

// typicalThroughput is the throughput of one queue with one lock on two virtual CPUs, in packets
// per second (measured with measure.go, many runs). It is printed without --measure.
const typicalThroughput = 0.4e6

// device returns the checks of one device.
func device(name string, o Options, measured *Ceiling) ([]Check, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) || err != nil && len(name) >= unix.IFNAMSIZ {
		return []Check{{
			About: name, Name: "device", State: Missing, Needed: true, Meaning: "no such device",
			Remedy: "name a device that \"ip link\" lists; the agent waits for devices that appear later",
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
		speed(l),
		queues(l, t, measured),
		offloads(l, t),
		{About: name, Name: "MTU", State: OK, Found: fmt.Sprint(l.Attrs().MTU), Meaning: "queue lengths depend on it: apply again, or run the agent, after changing it"},
	}
	checks = append(append(checks, earlierPrograms(l)...), bypasses(l)...)
	return append(checks, conflicts(name, o)...), nil
}

// earlierPrograms checks for eBPF programs that run before any filter: XDP and tcx programs.
func earlierPrograms(l netlink.Link) (out []Check) {
	limited := func(name, found, means string) {
		out = append(out, Check{About: l.Attrs().Name, Name: name, State: Limited, Found: found, Meaning: means, Remedy: "none, if this is intended"})
	}
	if x := l.Attrs().Xdp; x != nil && x.Attached {
		limited("XDP", fmt.Sprintf("program %d", x.ProgId), "packets that it drops, answers or redirects belong to no group, and packets that XDP redirects to this device pass no qdisc")
	}
	sooner, err := attach.TCXPrograms(l.Attrs().Name)
	if err != nil {
		return out // the device has disappeared
	}
	become := [2]string{
		attach.Egress:  "share at most a quarter of the limit with control traffic (engine htb), or are not limited",
		attach.Ingress: "are not limited",
	}
	for side, name := range [2]string{attach.Egress: "tcx egress", attach.Ingress: "tcx ingress"} {
		for _, what := range sooner[side] {
			limited(name, strings.TrimPrefix(what, name+" "), "packets that it drops, redirects or passes, other than with TCX_NEXT, belong to no group; passed ones "+become[side])
		}
	}
	return out
}

func deviceState(l netlink.Link, driver string) Check {
	a := l.Attrs()
	c := Check{About: a.Name, Name: "device", State: OK, Meaning: "the device exists"}
	var found []string
	if l.Type() != "device" { // the type of a device without a link kind
		found = append(found, l.Type())
	}
	if driver != "" && driver != l.Type() {
		found = append(found, "driver "+driver)
	}
	if a.OperState != netlink.OperUnknown {
		found = append(found, a.OperState.String())
	}
	if a.MasterIndex != 0 {
		found = append(found, "part of a bridge or bond")
	}
	c.Found = strings.Join(found, ", ")
	if a.OperState == netlink.OperDown || a.OperState == netlink.OperLowerLayerDown || a.OperState == netlink.OperNotPresent {
		c.State, c.Meaning, c.Remedy = Limited, "groups can be configured, but the link is down", "ip link set "+a.Name+" up, and check the cable and the other end"
	}
	return c
}

// hardware reports whether the device is a hardware device. The speed that a veth or tap
// reports is not real.
func hardware(l netlink.Link) bool { return l.Attrs().ParentDev != "" }

func speed(l netlink.Link) Check {
	c := Check{About: l.Attrs().Name, Name: "speed", State: OK}
	rate, known := netdev.Speed(l.Attrs().Name)
	switch {
	case !hardware(l):
		c.Found, c.Meaning = "virtual", "the device has no link speed: choose any limit"
	case known:
		c.Found, c.Meaning = rate.String(), "limits should be at most the speed for \"out\", and below it for \"in\""
	default:
		c.State, c.Found, c.Meaning = Limited, "unknown", "limits cannot be compared with the speed; with a limit above it groups have no effect"
		c.Remedy = "set the limit to the rate of your provider's contract, or better to a measured capacity"
	}
	return c
}

func queues(l netlink.Link, t *ethtool, measured *Ceiling) Check {
	n := t.txQueues()
	if n == 0 {
		n = l.Attrs().NumTxQueues
	}
	c := Check{About: l.Attrs().Name, Name: "transmit queues", State: OK, Found: fmt.Sprint(n)}
	ceiling := fmt.Sprintf("about %s packets per second on two virtual CPUs (measure this machine with --measure)", millions(typicalThroughput))
	if measured != nil {
		ceiling = fmt.Sprintf("%s packets or %s per second, as measured", millions(measured.PacketsPerSecond), gigabits(measured.Bandwidth))
	}
	if n <= 1 {
		c.Meaning = "one queue and one lock, with groups or without: up to " + ceiling
		return c
	}
	c.State = Limited
	c.Meaning = fmt.Sprintf("all %d share one HTB and its lock, for which CPUs contend: the throughput of the device is %s", n, ceiling)
	c.Remedy = "none is needed below that; above it, configure groups on VLANs, virtual functions or veths instead of the device"
	return c
}

func millions(n float64) string { return fmt.Sprintf("%.2g million", n/1e6) }

func gigabits(r unit.Rate) string { return fmt.Sprintf("%.3g Gbit", float64(r)/float64(unit.Gbit)) }

func offloads(l netlink.Link, t *ethtool) Check {
	c := Check{About: t.dev, Name: "offloads", State: OK, Meaning: "super-packets of up to 64 KB are classified and queued as one packet"}
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
		c.State, c.Meaning = Limited, "more frames are classified and queued individually: less throughput per CPU, the same guarantees"
		c.Remedy = fmt.Sprintf("ethtool -K %s %s, unless they are off on purpose", t.dev, strings.Join(remedy, " "))
	}
	return c
}

// conflicts checks for foreign traffic control with which the engine would conflict.
func conflicts(dev string, o Options) []Check {
	state, err := o.Observe(dev)
	switch {
	case err == nil:
		c := Check{About: dev, Name: "groups", State: OK, Found: "in force, by " + string(state.Engine), Meaning: "headgate show prints them"}
		if len(state.Drift) > 0 {
			c.State, c.Meaning, c.Remedy = Limited, "another program changed them: "+state.Drift[0].String(), "headgate apply, or run the agent"
		}
		return append([]Check{c}, foreignObjects(dev, state.Foreign)...)
	case !errors.Is(err, shaper.ErrNotShaped):
		return []Check{checkOf("groups", err, "groups in force on the device", "cannot read the groups in force", "report a bug with this text").about(dev).needed()}
	}
	var out []Check
	for _, d := range []struct {
		name    string
		out, in bool
	}{{"traffic control \"out\"", true, false}, {"traffic control \"in\"", false, true}} {
		p, err := simplePlan(dev, unit.Gbit, d.out, d.in)
		if err == nil {
			_, err = o.Engine.Diff(p)
		}
		out = append(out, checkOf(d.name, err, "no foreign traffic control conflicts", "groups are refused there, because they would break foreign traffic control",
			"remove the foreign traffic control, or do not configure the device").about(dev).needed())
	}
	state, _ = o.Engine.Observe(dev) // lists foreign traffic control also on a device without groups
	return append(out, foreignObjects(dev, state.Foreign)...)
}

// foreignObjects returns a check for each foreign object that stays beside Headgate's.
func foreignObjects(dev string, foreign []string) (out []Check) {
	for _, what := range foreign {
		if attach.IsConflict(what) {
			out = append(out, Check{
				About: dev, Name: "foreign", State: Limited, Found: what, Meaning: "while ingress is redirected, ingress packets bypass this object, or pass it twice",
				Remedy: "remove the object, or run \"headgate clear --dev " + dev + "\"",
			})
			continue
		}
		out = append(out, Check{
			About: dev, Name: "foreign", State: OK, Found: what, Meaning: "stays, and runs after Headgate's classifier",
		})
	}
	return out
}

func (c Check) about(dev string) Check { c.About = dev; return c }
