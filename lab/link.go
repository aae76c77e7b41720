package lab

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/wire"
)

// mtu is of every link.
const mtu = 1500

// firstIndex is above what the kernel gives by itself.
const firstIndex = 10_000

// makeLink makes link i, gives both ends their addresses and rates, and sets
// them up.
func (l *Lab) makeLink(i int, spec LinkSpec, devs [2]string) error {
	nodes := [2]*Node{l.nodes[spec.Ends[0]], l.nodes[spec.Ends[1]]}
	if l.backends[i] != Emulator {
		if err := makeVeth(i, nodes, devs); err != nil {
			return err
		}
		return l.setUp(i, spec, nodes, devs)
	}
	taps, err := makeTaps(nodes, devs)
	if err != nil {
		return err
	}
	if err := l.setUp(i, spec, nodes, devs); err != nil {
		taps[0].Close()
		taps[1].Close()
		return err
	}
	// Only now: a device that is not up takes no frames.
	l.wires[i], err = l.startWire(i, spec, taps)
	return err
}

// seed is what a link's backend draws from: its own, or one that is made of the
// lab's and the link's name, or another each time; 0 if it draws nothing. The second
// direction has the next.
func (b Backend) seed(spec LinkSpec, name string, whole uint64) uint64 {
	switch {
	case b == Veth:
		return 0
	case spec.Seed != 0:
		return spec.Seed
	case whole != 0:
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %s", whole, name)
		return uint64(h.Sum32()) + 1
	}
	return rand.Uint64N(1<<32) + 1 // short enough to be typed
}

// startWire carries frames between both ends of link i.
func (l *Lab) startWire(i int, spec LinkSpec, taps [2]*wire.Tap) (*wire.Link, error) {
	var options [2]wire.Options
	for dir, p := range [2]Path{spec.Forward, spec.Back} {
		options[dir] = wire.Options{Link: p.Spec, Exact: p.Exact, Seed: l.seeds[i] + uint64(dir), LateBound: spec.LateBound}
		trace, err := l.openTrace(i, dir)
		if err != nil {
			taps[0].Close()
			taps[1].Close()
			return nil, err
		}
		if trace != nil { // a nil *os.File is an io.Writer that is not nil
			options[dir].Trace = trace
		}
	}
	return wire.Start(taps, options)
}

// setUp gives both devices of link i what they need and sets them up.
func (l *Lab) setUp(i int, spec LinkSpec, nodes [2]*Node, devs [2]string) error {
	paths := [2]Path{spec.Forward, spec.Back}
	for end, n := range nodes {
		link, err := n.nl.LinkByName(devs[end])
		if err != nil {
			return err
		}
		if spec.NoOffload {
			if err := n.Do(func() error { return offloadOff(devs[end]) }); err != nil {
				return fmt.Errorf("turn offload off on %s: %w", devs[end], err)
			}
		}
		if l.backends[i] != Emulator && !spec.NoOffload && slices.Contains(l.backends, Netem) {
			if err := n.Do(func() error { return receiveInOrder(devs[end]) }); err != nil {
				return fmt.Errorf("keep the order behind netem on %s: %w", devs[end], err)
			}
		}
		for _, p := range []netip.Prefix{l.Topology.prefix4(i, end), l.Topology.prefix6(i, end)} {
			a := &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD}
			if err := n.nl.AddrAdd(link, a); err != nil {
				return fmt.Errorf("add address %v to %s: %w", p, devs[end], err)
			}
		}
		if err := n.Do(func() error { return l.backends[i].limit(n.nl, link, paths[end], l.seeds[i]+uint64(end)) }); err != nil {
			return fmt.Errorf("limit %s: %w", devs[end], err)
		}
		if err := n.nl.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", devs[end], err)
		}
	}
	return nil
}

// limit makes the kernel do to what link sends what p asks, as far as that is the
// backend's way. The calling thread must be in h's namespace.
func (b Backend) limit(h *netlink.Handle, link netlink.Link, p Path, seed uint64) error {
	switch b {
	case Veth:
		return shape(h, link, p)
	case Netem:
		return addNetem(link, p.netem(seed))
	}
	return nil
}

// change gives a direction of link i (0 is forward) other properties.
func (l *Lab) change(i, dir int, p Path) error {
	if w := l.wires[i]; w != nil {
		w.Change(dir, p.Spec)
		return nil
	}
	spec := l.Topology.Links[i]
	n := l.nodes[spec.Ends[dir]]
	link, err := n.nl.LinkByName(l.devs[i][dir])
	if err != nil {
		return err
	}
	return n.Do(func() error {
		switch {
		case l.backends[i] == Netem:
			return changeNetem(link, p.netem(l.seeds[i]+uint64(dir)))
		case p.Rate > 0:
			return reshape(n.nl, link, p)
		}
		return nil
	})
}

// netem is p as the kernel's netem has it. A queue of bytes or time becomes as
// many full frames.
func (p Path) netem(seed uint64) netemOptions {
	o := netemOptions{
		Rate: p.Rate, Delay: p.Delay, Jitter: p.Jitter.Amount, Reorder: p.Jitter.Reorder,
		Loss: p.Loss.Probability, Seed: seed,
	}
	if p.Loss.TwoStates() {
		o.Bursts = &gilbertElliott{ToBad: p.Loss.ToBad, ToGood: p.Loss.ToGood, LossBad: p.Loss.Bad, LossGood: p.Loss.Good}
	}
	if p.Rate > 0 {
		o.Queue = uint32(p.Queue.Segments)
		if o.Queue == 0 {
			o.Queue = uint32(max(p.queueBytes()/frame, 1))
		}
	}
	return o
}

// makeVeth makes both devices in their namespaces at once, so that none is ever
// seen, or left, in the host's.
//
// The first end's index is set because the kernel would else, in two fresh
// namespaces, give both ends the same; it then takes the pair for no pair, its
// carrier for not urgent, and reports it a second later (linkwatch_urgent_event).
func makeVeth(i int, nodes [2]*Node, devs [2]string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Index = devs[0], mtu, firstIndex+i
	return nodes[0].nl.LinkAdd(&netlink.Veth{
		// -1 is the kernel's default. 0 would be taken at its word, and is the limit
		// of a queue that someone adds to the device without a limit of its own.
		LinkAttrs: attrs, PeerName: devs[1], PeerMTU: mtu, PeerTxQLen: -1,
		PeerNamespace: netlink.NsFd(nodes[1].ns.Fd()),
	})
}

// makeTaps makes a TAP in each namespace.
func makeTaps(nodes [2]*Node, devs [2]string) (taps [2]*wire.Tap, err error) {
	for end, n := range nodes {
		err = n.Do(func() (err error) { taps[end], err = wire.OpenTap(devs[end]); return err })
		if err != nil {
			if end == 1 {
				taps[0].Close()
			}
			return taps, err
		}
	}
	return taps, nil
}

// introduce tells both ends of link i each other's hardware address, as if they
// had just asked: the first packets of a measurement do not wait for ARP, which
// over 100 ms of delay held back forty probes. The entries age like others.
func (l *Lab) introduce(i int, spec LinkSpec, devs [2]string) error {
	for end := range 2 {
		here, there := l.nodes[spec.Ends[end]], l.nodes[spec.Ends[1-end]]
		own, err := here.nl.LinkByName(devs[end])
		if err != nil {
			return err
		}
		peer, err := there.nl.LinkByName(devs[1-end])
		if err != nil {
			return err
		}
		for _, p := range []netip.Prefix{l.Topology.prefix4(i, 1-end), l.Topology.prefix6(i, 1-end)} {
			err := here.nl.NeighSet(&netlink.Neigh{
				LinkIndex: own.Attrs().Index, State: netlink.NUD_REACHABLE,
				IP: p.Addr().AsSlice(), HardwareAddr: peer.Attrs().HardwareAddr,
			})
			if err != nil {
				return fmt.Errorf("tell %s the hardware address of %v: %w", spec.Ends[end], p.Addr(), err)
			}
		}
	}
	return nil
}

// addRoutes gives n its routes to every network it is not on.
func (l *Lab) addRoutes(n *Node) error {
	t := l.Topology
	for _, r := range t.routes(n.Name) {
		link, err := n.nl.LinkByName(l.devs[r.Via][r.End])
		if err != nil {
			return err
		}
		for _, p := range []struct{ dst, gw netip.Prefix }{
			{t.prefix4(r.Net, 0), t.prefix4(r.Via, 1-r.End)},
			{t.prefix6(r.Net, 0), t.prefix6(r.Via, 1-r.End)},
		} {
			err := n.nl.RouteAdd(&netlink.Route{
				LinkIndex: link.Attrs().Index, Dst: ipNet(p.dst.Masked()), Gw: net.IP(p.gw.Addr().AsSlice()),
			})
			if err != nil {
				return fmt.Errorf("add route to %v: %w", p.dst.Masked(), err)
			}
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
