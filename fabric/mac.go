package fabric

import (
	"bytes"
	"fmt"
	"net"
)

// MAC is the 48-bit address of a network interface (IEEE 802). Unlike net.HardwareAddr it can be the key of a map.
type MAC [6]byte

// ParseMAC parses 02:00:00:00:00:01 and the other notations of net.ParseMAC. Addresses of other sizes are errors.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("%q is not a MAC address: write six pairs of hexadecimal digits, for example 02:00:00:00:00:01", s)
	}
	return MAC(hw), nil
}

// String prints 02:00:00:00:00:01.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Compare orders addresses by their bytes.
func (m MAC) Compare(n MAC) int { return bytes.Compare(m[:], n[:]) }

// Group reports whether m is a multicast or broadcast address, which no interface sends from (IEEE 802, 8.2.2).
func (m MAC) Group() bool { return m[0]&1 != 0 }

// MarshalText prints as String does.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText parses as ParseMAC does.
func (m *MAC) UnmarshalText(b []byte) (err error) { *m, err = ParseMAC(string(b)); return err }
