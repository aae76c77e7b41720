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

// mtu is the MTU of every link.
const mtu = 1500

// firstIndex is above the interface indexes that the kernel assigns itself.
const firstIndex = 10_000

// at returns the node that has an end of a link in its namespace: for a switch, that of all switches.
func (l *Lab) at(name string) *Node {
	if n, ok := l.nodes[name]; ok {
		return n
	}
	return l.switches.node
}

// makeLink creates link i, configures the addresses and rates of both ends, and sets them up.
func (l *Lab) makeLink(i int, spec LinkSpec, devs [2]string) error {
	nodes := [2]*Node{l.at(spec.Ends[0]), l.at(spec.Ends[1])}
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
	// Started last: a device that is down accepts no frames.
	l.wires[i], err = l.startWire(i, spec, taps)
	return err
}

// seed returns the seed of a link's backend: the link's own, one derived from the lab's seed and the
// link's name, or a random one; 0 if the backend has no random properties. The second direction uses
// the next number.
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

// startWire starts the emulator between both ends of link i.
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
		if trace != nil { // a nil *os.File in an io.Writer is not nil
			options[dir].Trace = trace
		}
	}
	return wire.Start(taps, options)
}

// setUp configures both devices of link i and sets them up.
func (l *Lab) setUp(i int, spec LinkSpec, nodes [2]*Node, devs [2]string) error {
	paths := [2]Path{spec.Forward, spec.Back}
	for end, n := range nodes {
		link, err := n.nl.LinkByName(devs[end])
		if err != nil {
			return err
		}
		if spec.NoOffload {
			if err := n.Do(func() error { return offloadOff(devs[end]) }); err != nil {
				return fmt.Errorf("cannot turn off the offloads of %s: %w", devs[end], err)
			}
		}
		if l.backends[i] != Emulator && !spec.NoOffload && slices.Contains(l.backends, Netem) {
			if err := n.Do(func() error { return receiveInOrder(devs[end]) }); err != nil {
				return fmt.Errorf("cannot preserve the order of packets behind netem on %s: %w", devs[end], err)
			}
		}
		for _, p := range []netip.Prefix{l.addresses.v4[i][end], l.addresses.v6[i][end]} {
			if !p.IsValid() { // at a switch
				continue
			}
			a := &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD}
			if err := n.nl.AddrAdd(link, a); err != nil {
				return fmt.Errorf("cannot add address %v to %s: %w", p, devs[end], err)
			}
		}
		if err := n.Do(func() error { return l.backends[i].limit(n.nl, link, paths[end], l.seeds[i]+uint64(end)) }); err != nil {
			return fmt.Errorf("limit %s: %w", devs[end], err)
		}
		if err := n.nl.LinkSetUp(link); err != nil {
			return fmt.Errorf("cannot set %s up: %w", devs[end], err)
		}
	}
	return nil
}

// limit applies the properties p to what link sends, as far as the kernel implements the backend. The
// calling thread must be in h's namespace.
func (b Backend) limit(h *netlink.Handle, link netlink.Link, p Path, seed uint64) error {
	switch b {
	case Veth:
		return shape(h, link, p)
	case Netem:
		return addNetem(link, p.netem(seed))
	}
	return nil
}

// change changes the properties of a direction of link i (0 is forward).
func (l *Lab) change(i, dir int, p Path) error {
	if w := l.wires[i]; w != nil {
		w.Change(dir, p.Spec)
		return nil
	}
	spec := l.Topology.Links[i]
	n := l.at(spec.Ends[dir])
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

// netem converts p to the options of the kernel's netem. A queue in bytes or time is converted to full
// frames.
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

// makeVeth creates both devices in their namespaces at once, so that none is ever in the host's
// namespace.
//
// The index of the first end is set because otherwise, in two new namespaces, the kernel would give
// both ends the same index. It would then not recognise the pair, treat its carrier as not urgent, and
// report it a second later (linkwatch_urgent_event).
func makeVeth(i int, nodes [2]*Node, devs [2]string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Index = devs[0], mtu, firstIndex+i
	return nodes[0].nl.LinkAdd(&netlink.Veth{
		// -1 is the kernel's default. With 0 the limit of a queue that is added to the device without
		// its own limit would be 0.
		LinkAttrs: attrs, PeerName: devs[1], PeerMTU: mtu, PeerTxQLen: -1,
		PeerNamespace: netlink.NsFd(nodes[1].ns.Fd()),
	})
}

// makeTaps creates a TAP in each namespace.
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

// introduce adds each end's hardware address to the other's neighbour table, so that the first packets
// of a measurement do not wait for ARP; with 100 ms of delay that affected forty probes. The entries
// age like others. At switches nothing is added: there ARP and neighbour discovery are a part of what
// a controller sees.
func (l *Lab) introduce(i int, spec LinkSpec, devs [2]string) error {
	if l.addresses.segments[l.addresses.of[i]].switched {
		return nil
	}
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
		for _, p := range []netip.Prefix{l.addresses.v4[i][1-end], l.addresses.v6[i][1-end]} {
			err := here.nl.NeighSet(&netlink.Neigh{
				LinkIndex: own.Attrs().Index, State: netlink.NUD_REACHABLE,
				IP: p.Addr().AsSlice(), HardwareAddr: peer.Attrs().HardwareAddr,
			})
			if err != nil {
				return fmt.Errorf("cannot add the hardware address of %v to the neighbours of %s: %w", p.Addr(), spec.Ends[end], err)
			}
		}
	}
	return nil
}

// addRoutes adds n's routes to every network to which it is not attached.
func (l *Lab) addRoutes(n *Node) error {
	a := l.addresses
	for _, r := range l.Topology.routes(n.Name, a) {
		link, err := n.nl.LinkByName(l.devs[r.Via.link][r.Via.end])
		if err != nil {
			return err
		}
		for _, p := range []struct{ dst, gw netip.Prefix }{
			{a.segments[r.Net].v4, a.v4[r.Gateway.link][r.Gateway.end]},
			{a.segments[r.Net].v6, a.v6[r.Gateway.link][r.Gateway.end]},
		} {
			err := n.nl.RouteAdd(&netlink.Route{
				LinkIndex: link.Attrs().Index, Dst: ipNet(p.dst), Gw: net.IP(p.gw.Addr().AsSlice()),
			})
			if err != nil {
				return fmt.Errorf("cannot add a route to %v: %w", p.dst, err)
			}
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
