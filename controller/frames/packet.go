package frames

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/group"
)

// Packet is a packet: as "headgate explain" has it, and what only a frame has.
type Packet struct {
	group.Packet
	// dst is the destination's MAC, nil if it follows from the packet.
	dst *fabric.MAC
	// asks is the kind of a question or announcement that is none of group.Packet: "arp", "nd" or "broadcast".
	asks string
	// target is the address whose owner arp and nd ask for; invalid for arp without one.
	target netip.Addr
}

// form says how a packet is written.
const form = "write one such as tcp 10.0.0.1:1000 10.0.0.2:80, icmp 10.0.0.1 10.0.0.2, arp 10.0.0.2, nd fd00::2 or broadcast"

// Parse parses a packet in the syntax of group.ParsePacket, with dmac and a MAC, and these forms: "arp TARGET", "nd TARGET" and
// "broadcast" (an empty frame to all).
func Parse(text string) (p Packet, err error) {
	words := strings.Fields(text)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "dmac") }); i >= 0 {
		if i+1 == len(words) {
			return p, fmt.Errorf("dmac has no value: write a MAC address after it, such as dmac 02:00:00:00:00:02")
		}
		mac, err := fabric.ParseMAC(words[i+1])
		if err != nil {
			return p, err
		}
		p.dst, words = &mac, slices.Delete(words, i, i+2)
	}
	if len(words) == 0 {
		return p, fmt.Errorf("the packet is empty: %s", form)
	}
	switch kind := strings.ToLower(words[0]); kind {
	case "arp", "nd":
		p.asks = kind
		if words, err = p.parseTarget(words); err != nil {
			return p, err
		}
	case "broadcast":
		p.asks = kind
	}
	if p.asks != "" {
		words[0] = "arp" // the fields of all that is not IP
	}
	if p.Packet, err = group.ParsePacket(strings.Join(words, " ")); err != nil {
		return p, err
	}
	switch {
	case p.Mark != 0:
		return p, fmt.Errorf("frames have no mark: leave it out")
	case p.Cgroup != "":
		return p, fmt.Errorf("frames have no cgroup: leave it out")
	}
	return p, nil
}

// parseTarget takes the target of a question from the words.
func (p *Packet) parseTarget(words []string) ([]string, error) {
	given := false
	if len(words) > 1 {
		a, err := netip.ParseAddr(words[1])
		if given = err == nil; given {
			p.target = a.WithZone("").Unmap()
			words = slices.Delete(words, 1, 2)
		}
	}
	switch {
	case p.asks == "arp" && given && !p.target.Is4():
		return nil, fmt.Errorf("arp asks for IPv4 addresses: write nd %v", p.target)
	case p.asks == "nd" && !given:
		return nil, fmt.Errorf("nd has no target: write the IPv6 address whose owner is asked for, such as nd fd00::2")
	case p.asks == "nd" && p.target.Is4():
		return nil, fmt.Errorf("nd asks for IPv6 addresses: write arp %v", p.target)
	}
	return words, nil
}
