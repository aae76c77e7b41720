package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/internal/nft"
)

// Warning is a warning about one document: a rule or limit of it likely has no effect. It is no mistake
// in the document, because the machine may change.
type Warning struct {
	File    string
	Line    int
	Key     string // "out.groups[1].match[0].mark"
	Message string
}

// String returns the warning with its position.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d: %s: warning: %s", w.File, w.Line, w.Key, w.Message)
}

func warningAt(i config.Interface, key, message string) Warning {
	file, line, _ := i.Where(key)
	return Warning{file, line, key, message}
}

// keyWarning is a warning with its key, but without the position of the key in a file.
type keyWarning struct{ key, message string }

// Machine is what the warnings depend on: the devices and source translations of a machine. Of a nil
// Machine nothing is known, and the warnings are those that hold on any machine.
type Machine struct {
	devices netdev.Devices
	sources []nft.SourceNAT
}

// Read reads the devices of this network namespace and, if permitted, the source translations. It
// returns nil if it cannot read the devices.
func Read() *Machine {
	devices, err := netdev.List()
	if err != nil {
		return nil
	}
	sources, _ := nft.SourceNATRules() // warnings need no complete data
	return &Machine{devices, sources}
}

// Rules returns warnings about rules that likely match no packets where they are, and about devices
// that are bypassed by traffic which they seem to carry.
func (m *Machine) Rules(set config.Set) (out []Warning) {
	for _, i := range set.Interfaces {
		for _, w := range m.keyWarnings(set, i) {
			out = append(out, warningAt(i, w.key, w.message))
		}
	}
	return out
}

// Bypassed returns a warning if a device is bypassed by traffic that it seems to carry, or "".
func (m *Machine) Bypassed(dev string) string {
	if m == nil {
		return ""
	}
	for _, d := range m.devices {
		if d.Name == dev {
			return m.bypassed(d)
		}
	}
	return ""
}

// keyWarnings returns the warnings about a document.
func (m *Machine) keyWarnings(set config.Set, i config.Interface) (out []keyWarning) {
	devices := m.of(set, i)
	for _, d := range []struct {
		name string
		*group.Direction
		ingress bool // the direction is the device's ingress
	}{{"out", i.Out, i.Perspective == group.Guest}, {"in", i.In, i.Perspective != group.Guest}} {
		if d.Direction == nil {
			continue
		}
		if d.ingress {
			out = append(out, marked(d.Groups, d.name, devices)...)
		}
		if i.Perspective == group.Host {
			out = append(out, m.translated(d.Groups, d.name, d.ingress, devices)...)
		}
		if !d.ingress && m != nil {
			out = append(out, elsewhere(d.Groups, d.name)...)
		}
	}
	for _, l := range devices {
		if message := m.bypassed(l); message != "" {
			out = append(out, keyWarning{"dev", message})
		}
	}
	return out
}

// of returns the devices that a document applies to.
func (m *Machine) of(set config.Set, i config.Interface) (out netdev.Devices) {
	if m == nil {
		return nil
	}
	for _, l := range m.devices {
		if owner, ok := set.For(l.Name); ok && owner.Dev == i.Dev {
			out = append(out, l)
		}
	}
	return out
}

// eachRule calls do for each selector of groups, with its key.
func eachRule(groups []group.Group, where string, do func(s group.Selector, key string)) {
	for n, g := range groups {
		here := fmt.Sprintf("%s.groups[%d]", where, n)
		for m, s := range g.Match {
			do(s, fmt.Sprintf("%s.match[%d]", here, m))
		}
		eachRule(g.Groups, here, do)
	}
}

// more returns an addition to a message about the first of n rules.
func more(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (applies to %d rules)", n)
}

// marked returns warnings about rules that match marks at a device's ingress, where packets are
// classified before the firewall marks them. Measured on this kernel (TestMarksAtIngress in test/e2e): packets
// have no mark from the firewall's ingress and prerouting hooks, or from a sender in another
// namespace. They have a mark from a sender in this namespace (lo, both ends of a veth), from hooks
// of the device below, and from a program on the tcx hook.
func marked(groups []group.Group, direction string, devices netdev.Devices) []keyWarning {
	first, n := "", 0
	eachRule(groups, direction, func(s group.Selector, key string) {
		if !s.MatchesOnMark() {
			return
		}
		if n++; first == "" {
			first = key + ".mark"
			if len(s.Mark) == 0 {
				first = key + ".not.mark"
			}
		}
	})
	if n == 0 || len(devices) > 0 && !slices.ContainsFunc(devices, func(l netdev.Device) bool { return !l.Loopback }) {
		return nil
	}
	if len(devices) > 0 && !slices.ContainsFunc(devices, func(l netdev.Device) bool { return l.Kind == "device" || l.Kind == "tap" || l.Kind == "tun" }) {
		return []keyWarning{{first, "received packets are classified before this device's firewall (nftables, iptables) marks them: they have a mark only if it was set earlier, such as on a device below this one or by a sender in this network namespace" + more(n)}}
	}
	return []keyWarning{{first, "received packets are classified before the firewall (nftables, iptables, CONNMARK) marks them, so they have no mark, unless an eBPF program on the tcx ingress hook sets one: match by addresses or ports, or put the rule on the egress device" + more(n)}}
}

// translated returns warnings about rules that match inner addresses at a device with source NAT. At
// egress the source is already translated, and at ingress the destination is not yet restored.
func (m *Machine) translated(groups []group.Group, direction string, ingress bool, devices netdev.Devices) (out []keyWarning) {
	for _, l := range devices {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			own := ownAddrs(l.Addrs, family)
			replaced := slices.ContainsFunc(m.sources, func(n nft.SourceNAT) bool { return (n.Family == 0 || n.Family == family) && n.Matches(l.Name) })
			if !replaced || len(own) == 0 {
				continue
			}
			first, n := "", 0
			eachRule(groups, direction, func(r group.Selector, key string) {
				end, list := ".src", r.Src
				if ingress {
					end, list = ".dst", r.Dst
				}
				if !within(list, family) || slices.ContainsFunc(list, func(p netip.Prefix) bool {
					return slices.ContainsFunc(own, p.Contains) || p.Addr().IsMulticast() || p.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255})
				}) {
					return
				}
				if n++; first == "" {
					first = key + end
				}
			})
			if n == 0 {
				continue
			}
			what := "egress packets of %s already have its address %v as the source, because the firewall translates it (masquerade, SNAT)"
			if ingress {
				what = "ingress packets of %s still have its address %v as the destination: the firewall restores the inner address later"
			}
			out = append(out, keyWarning{first, fmt.Sprintf(what+": match inner addresses on the inner device, or mark packets there and match the mark under out", l.Name, own[0]) + more(n)})
		}
	}
	return out
}

// within reports whether the list is not empty and has only prefixes of one IP version.
func within(list []netip.Prefix, family uint8) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr().Is4() != (family == unix.AF_INET) })
}

func ownAddrs(all []netip.Prefix, family uint8) (out []netip.Addr) {
	for _, p := range all {
		if p.Addr().Is4() == (family == unix.AF_INET) {
			out = append(out, p.Addr())
		}
	}
	return out
}

// bypassed returns a warning if traffic that a device seems to carry bypasses it.
func (m *Machine) bypassed(l netdev.Device) string {
	if l.Kind != "bridge" && l.Kind != "openvswitch" {
		return ""
	}
	ports := m.devices.Ports(l)
	if ports == "" {
		return ""
	}
	if len(l.Addrs) == 0 && !slices.ContainsFunc(m.devices, func(o netdev.Device) bool { return o.Lower == l.Index }) {
		return fmt.Sprintf("%s is a bridge on which this machine has no address: traffic between its ports%s does not pass through it, so almost no traffic is shaped here: use the ports instead", l.Name, ports)
	}
	return fmt.Sprintf("%s is a bridge: traffic between its ports%s does not pass through it, only traffic that this machine sends, receives or routes: to shape all traffic, use the ports instead", l.Name, ports)
}

// elsewhere returns warnings about cgroups whose processes are in another network namespace, such as a
// container's: their packets arrive routed or bridged, and have no socket in this namespace.
func elsewhere(groups []group.Group, direction string) (out []keyWarning) {
	eachRule(groups, direction, func(s group.Selector, key string) {
		if s.Cgroup != "" && allElsewhere(s.Cgroup) {
			out = append(out, keyWarning{key + ".cgroup", fmt.Sprintf("all processes of %s are in another network namespace, such as a container's: their packets have no cgroup at devices of this namespace: use the device that connects that namespace, with perspective: guest, or match by addresses", s.Cgroup)})
		}
	})
	return out
}

// maxProcesses is the number of processes of a cgroup to check. A sample is enough, because they
// usually share a namespace.
const maxProcesses = 64

// allElsewhere reports whether a cgroup has processes, all of them in other network namespaces.
func allElsewhere(cgroup string) bool {
	mount, err := cgroup2.Mount()
	if err != nil {
		return false
	}
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return false
	}
	seen, here := 0, false
	enough := errors.New("enough")
	filepath.WalkDir(filepath.Join(mount, cgroup), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, pid := range strings.Fields(string(text)) {
			ns, err := os.Readlink("/proc/" + pid + "/ns/net")
			if err != nil {
				continue
			}
			if seen++; ns == own {
				here = true
			}
			if here || seen >= maxProcesses {
				return enough
			}
		}
		return nil
	})
	return seen > 0 && !here
}
