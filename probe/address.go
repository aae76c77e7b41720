package probe

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Port is the default port of a probe server: TCP for control, UDP for probe trains.
const Port = 4950

// Address is the host and port of a server in canonical form: an IP address as net/netip
// prints it, or a name in lower case.
type Address struct {
	Host string
	Port int
}

// longestAddress is the length of the longest name with brackets, colon and port.
const longestAddress = 253 + len("[]:65535")

// ParseAddress parses "server.example.org", "192.0.2.7:5000", "2001:db8::7" or
// "[2001:db8::7]:5000".
func ParseAddress(s string) (a Address, err error) {
	a = Address{s, Port}
	if len(s) > longestAddress {
		return a, fmt.Errorf("host is too long: %d characters, names have at most 253", len(s))
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		a.Host = strings.TrimSuffix(inner, "]")
	} else if h, p, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return a, fmt.Errorf("port %q is invalid: use a number from 1 to 65535", p)
		}
		a = Address{h, int(n)}
	}
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		a.Host = ip.Unmap().String()
		return a, nil
	}
	a.Host = strings.TrimSuffix(strings.ToLower(a.Host), ".")
	if !isName(a.Host) {
		return a, fmt.Errorf("host %q is invalid: use a name or an address, with a port if it is not %d: server.example.org, 192.0.2.7:5000, [2001:db8::7]:5000", s, Port)
	}
	return a, nil
}

// isName reports whether s can be a host name (RFC 1123, and the underscores that are in
// use).
func isName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	// A name of digits and dots only is a mistyped address.
	return strings.Trim(s, "0123456789.") != ""
}

// String formats a for ParseAddress, without the port if it is the default one.
func (a Address) String() string {
	if a.Port != Port {
		return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	}
	return a.Host
}
