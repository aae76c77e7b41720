package switching

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// machines of the ring, and host, which connects them.
var machines = []string{"vm1", "vm2", "pm"}

const host = "host"

// site is the path of the ring's packets.
type site struct {
	id, name string
	// seed is the column of the thesis's table; -1 if it has none.
	seed int
	// joined: a host connects the machines, each with a device that has the machine's name; otherwise
	// they are connected directly, in the ring.
	joined, router bool
	// noOffload: the sender computes checksums, and there is no segmentation or aggregation offload.
	noOffload bool
	// build creates the switch in the host; nil if the host routes, or for direct links. Its result is
	// closed before the network is removed.
	build func(ctx context.Context, l *lab.Lab) (*built, error)
}

// built is a running switch.
type built struct {
	pids  []int // of programs that do its work
	close func() error
}

// nothing closes a switch that is removed with its namespace.
func nothing() error { return nil }

var sites = []site{
	{id: "bridge", name: "Linux bridge", seed: seedBridge, joined: true, build: bridge},
	{id: "open-vswitch", name: "Open vSwitch", seed: seedOpenvSwitch, joined: true, noOffload: true, build: openvSwitch},
	{id: "routed", name: "routed veth", seed: -1, joined: true, router: true},
	{id: "groups", name: "bridge with groups", seed: -1, joined: true, build: bridgeWithGroups},
	{id: "none", name: "no switch", seed: -1},
}

// fragmentMemory is the memory for datagrams with missing fragments. A receiver keeps them for 30 s,
// and accepts no fragment of any other once it has 4 MiB of them: behind a switch that drops, it
// received nothing from the fourth second on.
var fragmentMemory = map[string]string{"net.ipv4.ipfrag_high_thresh": fmt.Sprint(256 << 20)}

func (s site) topology() *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	for _, m := range machines {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: m, Sysctl: fragmentMemory})
	}
	if s.joined {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: host, Router: s.router})
	}
	for i, m := range machines {
		peer := host
		if !s.joined {
			peer = hops[i][1]
		}
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{m, peer}, NoOffload: s.noOffload})
	}
	return t
}

// addr returns the address by which the machine "from" reaches the machine "to".
func (s site) addr(t *lab.Topology) func(from, to string) (netip.Addr, error) {
	return func(from, to string) (netip.Addr, error) {
		if s.joined && !s.router {
			return switched(to).Addr(), nil
		}
		via := from
		if s.router {
			via = host
		}
		for _, d := range t.Devices() {
			if d.Node == to && d.To == via {
				return d.IPv4.Addr(), nil
			}
		}
		return netip.Addr{}, fmt.Errorf("no path from %s to %s", from, to)
	}
}

// switched returns a machine's address on the switch: of the network for benchmarks (RFC 2544), which
// no link of a lab has.
func switched(machine string) netip.Prefix {
	for i, m := range machines {
		if m == machine {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), 24)
		}
	}
	panic("switching: unknown machine " + machine)
}

// settle assigns the machines their addresses on the switch.
func settle(l *lab.Lab) error {
	for _, m := range machines {
		err := l.Node(m).Do(func() error {
			link, err := netlink.LinkByName(host)
			if err != nil {
				return err
			}
			p := switched(m)
			return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}})
		})
		if err != nil {
			return fmt.Errorf("cannot assign %s an address on the switch: %w", m, err)
		}
	}
	return nil
}

// bridgeName is the name of the Linux bridge and of Open vSwitch's bridge in the host.
const bridgeName = "br0"

// bridge connects the host's devices by a Linux bridge, which is removed with its namespace.
func bridge(_ context.Context, l *lab.Lab) (*built, error) {
	err := l.Node(host).Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = bridgeName
		br := &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		for _, m := range machines {
			port, err := netlink.LinkByName(m)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(port, br); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
		}
		return netlink.LinkSetUp(br)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a bridge: %w", err)
	}
	return &built{close: nothing}, settle(l)
}

// groupsLimit exceeds the rate of any hop, so that the cost of classifying, counting and queueing is
// measured.
const groupsLimit = 100 * unit.Gbit

// bridgeWithGroups has Headgate's groups on each port of the bridge, in direction out: every packet of
// the ring is classified and queued once.
func bridgeWithGroups(ctx context.Context, l *lab.Lab) (*built, error) {
	b, err := bridge(ctx, l)
	if err != nil {
		return nil, err
	}
	engine := htb.New()
	b.close = func() error {
		var errs []error
		for _, m := range machines {
			errs = append(errs, l.Node(host).Do(func() error { return engine.Clear(m) }))
		}
		return errors.Join(errs...)
	}
	for _, m := range machines {
		if err := l.Node(host).Do(func() error { return limit(engine, m) }); err != nil {
			return b, fmt.Errorf("cannot apply groups on %s: %w", m, err)
		}
	}
	return b, nil
}

// limit applies a group for each hop on a device, and one for the rest.
func limit(engine shaper.Shaper, dev string) error {
	d := group.Direction{Limit: groupsLimit, Groups: []group.Group{
		{Name: "rest", Guarantee: group.Amount{Share: unit.Whole / 4}, Default: true},
	}}
	for i, hop := range hops {
		port := uint16(basePort + i)
		d.Groups = append(d.Groups, group.Group{
			Name: hop[0] + "-" + hop[1], Guarantee: group.Amount{Share: unit.Whole / 4},
			Match: []group.Selector{{DPort: []group.PortRange{{First: port, Last: port}}}},
		})
	}
	tree, problems := d.Resolve("out", true)
	if len(problems) > 0 {
		return fmt.Errorf("the benchmark's groups are invalid: %w", problems[0])
	}
	_, err := engine.Apply(shaper.Plan{Dev: dev, Perspective: group.Host, Out: &tree})
	return err
}
