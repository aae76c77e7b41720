package wire_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
	"headgate.dev/headgate/unit"
)

// rig is two hosts on the machine, in unnamed namespaces, which are removed with the test:
//
//	a ══ emulator ══ b        10.77.0.1, fd77::1      10.77.0.2, fd77::2
type rig struct {
	*wire.Link
	hosts map[string]*host
}

func (r *rig) host(name string) (traffic.Host, error) { return r.hosts[name], nil }

// host is a namespace that exists as long as its file is open.
type host struct {
	ns         netns.NsHandle
	nl         *netlink.Handle
	mac        net.HardwareAddr
	ip4, ip6   netip.Prefix
	index, end int
}

// device of either host.
const device = "link"

func (h *host) Do(fn func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // permanently: the thread ends with the goroutine
		if err := netns.Set(h.ns); err != nil {
			result <- err
			return
		}
		result <- fn()
	}()
	return <-result
}

func (h *host) Addr(ipv6 bool) (netip.Addr, error) {
	if ipv6 {
		return h.ip6.Addr(), nil
	}
	return h.ip4.Addr(), nil
}

// both returns the same options for both directions.
func both(o wire.Options) [2]wire.Options { return [2]wire.Options{o, o} }

// newRig creates the hosts and connects them. TCP's buffers hold 10 Gbit/s at 10 ms and 1 Gbit/s at
// 100.
func newRig(t testing.TB, options [2]wire.Options) *rig {
	t.Helper()
	labtest.NeedRoot(t)
	r := &rig{hosts: map[string]*host{}}
	var taps [2]*wire.Tap
	for end, name := range []string{"a", "b"} {
		h := &host{
			end: end,
			ip4: netip.MustParsePrefix(fmt.Sprintf("10.77.0.%d/24", end+1)),
			ip6: netip.MustParsePrefix(fmt.Sprintf("fd77::%d/64", end+1)),
		}
		r.hosts[name] = h
		check(t, h.make())
		t.Cleanup(func() { h.nl.Close(); h.ns.Close() })
		check(t, h.Do(func() (err error) { taps[end], err = wire.OpenTap(device); return err }))
		check(t, h.Do(h.setUp))
	}
	for end, name := range []string{"a", "b"} {
		check(t, r.hosts[name].knows(r.hosts[[]string{"b", "a"}[end]]))
	}
	l, err := wire.Start(taps, options)
	check(t, err)
	r.Link = l
	t.Cleanup(func() { r.Close() })
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *host) make() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			h.ns, err = netns.Get()
		}
		if err == nil {
			h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		}
		result <- err
	}()
	return <-result
}

func (h *host) setUp() error {
	for key, value := range map[string]string{
		"ipv6/conf/default/accept_dad": "0", "ipv6/conf/all/accept_dad": "0", "ipv6/conf/" + device + "/accept_dad": "0",
		"ipv6/conf/" + device + "/router_solicitations": "0",
		"ipv4/tcp_rmem": "4096 131072 67108864", "ipv4/tcp_wmem": "4096 131072 67108864",
		"ipv4/tcp_no_metrics_save": "1", "ipv4/tcp_ecn": "1",
	} {
		if err := os.WriteFile("/proc/sys/net/"+key, []byte(value), 0o644); err != nil {
			return err
		}
	}
	lo, err := h.nl.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.nl.LinkSetUp(lo); err != nil {
		return err
	}
	dev, err := h.nl.LinkByName(device)
	if err != nil {
		return err
	}
	h.mac, h.index = dev.Attrs().HardwareAddr, dev.Attrs().Index
	for _, p := range []netip.Prefix{h.ip4, h.ip6} {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := h.nl.AddrAdd(dev, a); err != nil {
			return err
		}
	}
	return h.nl.LinkSetUp(dev)
}

// knows adds the other's hardware address to h, so that nothing waits for ARP.
func (h *host) knows(o *host) error {
	for _, p := range []netip.Prefix{o.ip4, o.ip6} {
		if err := h.nl.NeighSet(&netlink.Neigh{LinkIndex: h.index, State: netlink.NUD_PERMANENT, IP: p.Addr().AsSlice(), HardwareAddr: o.mac}); err != nil {
			return err
		}
	}
	return nil
}

// flow returns a flow from a to b.
func flow(p traffic.Protocol, r unit.Rate) traffic.Flow {
	return traffic.Flow{Name: "f", From: "a", To: "b", Protocol: p, Schedule: traffic.Constant(r)}
}

// run runs a flow and returns its result.
func (r *rig) run(t testing.TB, f traffic.Flow, length time.Duration) *traffic.FlowResult {
	t.Helper()
	res, err := traffic.Run(t.Context(), r.host, []traffic.Flow{f}, traffic.Options{Duration: length})
	check(t, err)
	return res.Flow("f")
}

// steal returns the steal time of the machine as a fraction.
func steal() func() float64 {
	read := func() (stolen, all float64) {
		b, _ := os.ReadFile("/proc/stat")
		for i, w := range strings.Fields(strings.SplitN(string(b), "\n", 2)[0])[1:9] {
			v, _ := strconv.ParseFloat(w, 64)
			all += v
			if i == 7 {
				stolen = v
			}
		}
		return stolen, all
	}
	s, a := read()
	return func() float64 { s2, a2 := read(); return (s2 - s) / max(a2-a, 1) }
}

func delay(rtt time.Duration) link.Spec { return link.Spec{Delay: rtt / 2} }
