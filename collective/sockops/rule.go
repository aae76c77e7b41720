package sockops

import (
	"fmt"
	"math"
	"net/netip"
	"unsafe"

	"headgate.dev/headgate/collective"
)

// rule is struct rule of slot.h.
type rule struct {
	Local, LocalMask, Remote, RemoteMask     [4]uint32
	LocalFrom, LocalTo, RemoteFrom, RemoteTo uint32
}

func newRule(r collective.Rule) (out rule) {
	out.Local, out.LocalMask = network(r.Local)
	out.Remote, out.RemoteMask = network(r.Remote)
	out.LocalFrom, out.LocalTo = ports(r.LocalPort)
	out.RemoteFrom, out.RemoteTo = ports(r.RemotePort)
	return out
}

func ports(p collective.Ports) (from, to uint32) {
	if p == (collective.Ports{}) {
		return 0, math.MaxUint16
	}
	return uint32(p.From), uint32(p.To)
}

// network returns a prefix as four words in network byte order, IPv4 mapped into IPv6;
// the zero Prefix matches everything.
func network(p netip.Prefix) (net, mask [4]uint32) {
	if !p.IsValid() {
		return net, mask
	}
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	var m [16]byte
	for i := range bits {
		m[i/8] |= 0x80 >> (i % 8)
	}
	a := p.Masked().Addr().As16()
	return *(*[4]uint32)(unsafe.Pointer(&a)), *(*[4]uint32)(unsafe.Pointer(&m))
}

// kernelRules converts rules for the program, which has a fixed number of them.
func kernelRules(rules []collective.Rule) (out [collective.MaxRules]rule, n uint32, err error) {
	if len(rules) > len(out) {
		return out, 0, fmt.Errorf("%d rules are too many: the maximum is %d", len(rules), len(out))
	}
	for i, r := range rules {
		out[i] = newRule(r)
	}
	return out, uint32(len(rules)), nil
}
