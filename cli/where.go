package cli

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

	"headgate/config"
	"headgate/group"
	"headgate/internal/cgroup2"
	"headgate/internal/nft"
)

// doubt is what keeps rules, or a document, from what they are likely meant for. It is no
// mistake, because it depends on this machine, which may change (docs/where.md).
type doubt struct {
	key     string // "out.groups[1].match[0].mark"
	message string
}

// surroundings are what a machine has around its devices; nil is that it is not known.
type surroundings struct {
	links   initLinks
	sources []nft.Source
}

// readSurroundings reads what may be read: for a warning, less is better than none.
func readSurroundings() *surroundings {
	links, err := readLinks()
	if err != nil {
		return nil
	}
	sources, _ := nft.Sources()
	return &surroundings{links, sources}
}

// warnWhere tells of what is likely never to be seen where the documents look for it. here tells
// that they are for this machine.
func (a *app) warnWhere(set config.Set, here bool) {
	var s *surroundings
	if here && a.around != nil {
		s = a.around()
	}
	for _, i := range set.Interfaces {
		for _, d := range s.doubts(set, i) {
			file, line, _ := i.Where(d.key)
			a.note("%s:%d: %s: warning: %s", file, line, d.key, d.message)
		}
	}
}

// warnDevice tells of a device that what it seems to carry does not go through it.
func (a *app) warnDevice(dev string) {
	if a.around == nil {
		return
	}
	s := a.around()
	if s == nil {
		return
	}
	for _, l := range s.links {
		if message := s.passedBy(l); l.name == dev && message != "" {
			a.note("headgate: warning: %s", message)
		}
	}
}

// doubts are those of a document.
func (s *surroundings) doubts(set config.Set, i config.Interface) (out []doubt) {
	devices := s.of(set, i)
	for _, d := range []struct {
		name string
		*group.Direction
		ingress bool // of the device
	}{{"out", i.Out, i.Perspective == group.Guest}, {"in", i.In, i.Perspective != group.Guest}} {
		if d.Direction == nil {
			continue
		}
		if d.ingress {
			out = append(out, marked(d.Groups, d.name, devices)...)
		}
		if i.Perspective == group.Host {
			out = append(out, s.translated(d.Groups, d.name, d.ingress, devices)...)
		}
		if !d.ingress && s != nil {
			out = append(out, elsewhere(d.Groups, d.name)...)
		}
	}
	for _, l := range devices {
		if message := s.passedBy(l); message != "" {
			out = append(out, doubt{"dev", message})
		}
	}
	return out
}

// of are the devices that a document is about.
func (s *surroundings) of(set config.Set, i config.Interface) (out initLinks) {
	if s == nil {
		return nil
	}
	for _, l := range s.links {
		if owner, ok := set.For(l.name); ok && owner.Dev == i.Dev {
			out = append(out, l)
		}
	}
	return out
}

// eachRule goes through the selectors of groups with their keys.
func eachRule(groups []group.Group, where string, do func(s group.Selector, key string)) {
	for n, g := range groups {
		here := fmt.Sprintf("%s.groups[%d]", where, n)
		for m, s := range g.Match {
			do(s, fmt.Sprintf("%s.match[%d]", here, m))
		}
		eachRule(g.Groups, here, do)
	}
}

// more is what is added to a message about the first of several.
func more(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (so it is with %d rules)", n)
}

// marked is about rules that ask for marks where packets come in by a device, which they do before
// the firewall gives them any. On this kernel, of what could set one sooner: the firewall's hooks
// ingress and prerouting, and the mark of a sender in another namespace, do not; the sender's own
// in this namespace (lo, both ends of a veth), hooks of the device below, and a program on the tcx
// hook do (TestMarksAtIngress).
func marked(groups []group.Group, direction string, devices initLinks) []doubt {
	first, n := "", 0
	eachRule(groups, direction, func(s group.Selector, key string) {
		if !s.AsksForMark() {
			return
		}
		if n++; first == "" {
			first = key + ".mark"
			if len(s.Mark) == 0 {
				first = key + ".not.mark"
			}
		}
	})
	if n == 0 || len(devices) > 0 && !slices.ContainsFunc(devices, func(l initLink) bool { return !l.loopback }) {
		return nil
	}
	if len(devices) > 0 && !slices.ContainsFunc(devices, func(l initLink) bool { return l.kind == "device" || l.kind == "tap" || l.kind == "tun" }) {
		return []doubt{{first, "what comes in here is looked at before this device's firewall (nftables, iptables) marks it: there is a mark only if it was set on the way here, as on a device below this one or by a sender in this network namespace" + more(n)}}
	}
	return []doubt{{first, "what comes in is looked at before the firewall (nftables, iptables, CONNMARK) marks it, so no mark is there yet, unless an eBPF program on the tcx ingress hook sets it: match by addresses or ports, or write the rule where the packets go out" + more(n)}}
}

// translated is about rules by addresses that packets do not have at a device where their source is
// replaced: on the way out it has been already, and on the way in the destination is not put back
// yet.
func (s *surroundings) translated(groups []group.Group, direction string, ingress bool, devices initLinks) (out []doubt) {
	for _, l := range devices {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			own := ownAddrs(l.addrs, family)
			replaced := slices.ContainsFunc(s.sources, func(n nft.Source) bool { return (n.Family == 0 || n.Family == family) && n.On(l.name) })
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
			what := "what leaves by %s has its address %v as the source already, because the firewall replaces it (masquerade, SNAT)"
			if ingress {
				what = "what comes in by %s still has its address %v as the destination: the firewall puts the inner one back later"
			}
			out = append(out, doubt{first, fmt.Sprintf(what+": match inner addresses on the device that leads to them, or mark there and match the mark under out", l.name, own[0]) + more(n)})
		}
	}
	return out
}

// within tells whether there are prefixes, and all of one IP version.
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

// passedBy tells that traffic which a device seems to carry does not go through it.
func (s *surroundings) passedBy(l initLink) string {
	if l.kind != "bridge" && l.kind != "openvswitch" {
		return ""
	}
	ports := s.links.ports(l)
	if ports == "" {
		return ""
	}
	if len(l.addrs) == 0 && !slices.ContainsFunc(s.links, func(o initLink) bool { return o.lower == l.index }) {
		return fmt.Sprintf("%s is a bridge, and this machine has no address there: what its ports%s pass to each other never goes through it, so hardly anything is divided here: name the ports", l.name, ports)
	}
	return fmt.Sprintf("%s is a bridge: what its ports%s pass to each other never goes through it, only what this machine itself sends, receives or routes: to divide all of it, name the ports", l.name, ports)
}

// elsewhere is about cgroups whose processes are in another network namespace, as a container's:
// their packets, routed or bridged, are no socket's of this one.
func elsewhere(groups []group.Group, direction string) (out []doubt) {
	eachRule(groups, direction, func(s group.Selector, key string) {
		if s.Cgroup != "" && allElsewhere(s.Cgroup) {
			out = append(out, doubt{key + ".cgroup", fmt.Sprintf("all processes of %s are in another network namespace, as those of a container: what they send has no cgroup any more when it comes to a device of this one: name the device that leads there, with perspective: guest, or match by addresses", s.Cgroup)})
		}
	})
	return out
}

// mostProcesses of a cgroup are looked at: whose are all alike is what matters.
const mostProcesses = 64

// allElsewhere tells whether a cgroup has processes, and all in other network namespaces.
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
			if here || seen >= mostProcesses {
				return enough
			}
		}
		return nil
	})
	return seen > 0 && !here
}
