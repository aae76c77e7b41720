package probe

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Port is the one on which servers answer (TCP) and measure (UDP) unless another is
// asked for.
const Port = 4950

// Address is where a server is, in the one form that two ways to write it have: an
// address as its own package prints it, a name in small letters.
type Address struct {
	Host string
	Port int
}

// longestAddress has a name, a port and their signs.
const longestAddress = 253 + len("[]:65535")

// ParseAddress reads "server.example.org", "192.0.2.7:5000", "2001:db8::7" or
// "[2001:db8::7]:5000".
func ParseAddress(s string) (a Address, err error) {
	a = Address{s, Port}
	if len(s) > longestAddress {
		return a, fmt.Errorf("a host of %d characters: names have up to 253", len(s))
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		a.Host = strings.TrimSuffix(inner, "]")
	} else if h, p, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return a, fmt.Errorf("%q is not a port: write a number from 1 to 65535", p)
		}
		a = Address{h, int(n)}
	}
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		a.Host = ip.Unmap().String()
		return a, nil
	}
	a.Host = strings.TrimSuffix(strings.ToLower(a.Host), ".")
	if !isName(a.Host) {
		return a, fmt.Errorf("%q is no host: write a name or an address, and a port if it is not %d: server.example.org, 192.0.2.7:5000, [2001:db8::7]:5000", s, Port)
	}
	return a, nil
}

// isName tells whether a text can be a host's name (RFC 1123, and the underscores
// that are in use).
func isName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	// All digits and dots would be an address with a slip in it.
	return strings.Trim(s, "0123456789.") != ""
}

// String is what ParseAddress reads; the usual port is left out.
func (a Address) String() string {
	if a.Port != Port {
		return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	}
	return a.Host
}
