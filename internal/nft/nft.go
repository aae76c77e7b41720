// Package nft reads source address translation rules from nftables, without changes. Rules of the
// older ip_tables of the kernel are not found; those that today's iptables creates are nftables
// rules (iptables-nft).
package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/nl"
)

// SourceNAT is a rule that translates source addresses: masquerade or SNAT.
type SourceNAT struct {
	// Family is unix.AF_INET or AF_INET6, or 0 for both.
	Family uint8
	// Dev is the output device, or a prefix of its name if Begins is set; "" means any device, or a
	// condition that this package does not parse. Except inverts the match.
	Dev            string
	Begins, Except bool
}

// Matches reports whether the rule applies, or may apply, to packets that leave by a device.
func (s SourceNAT) Matches(dev string) bool {
	if s.Dev == "" {
		return true
	}
	is := dev == s.Dev || s.Begins && len(dev) >= len(s.Dev) && dev[:len(s.Dev)] == s.Dev
	return is != s.Except
}

// Constants of include/uapi/linux/netfilter/nf_tables.h.
const (
	ruleExpressions                     = 4
	exprName, exprData                  = 1, 2
	metaKey, metaOIFName                = 2, 7
	cmpOp, cmpData, dataValue, cmpNotEq = 2, 3, 1, 1
	natType, natSource                  = 1, 0
	targetName                          = 1
	nfprotoIPv4, nfprotoIPv6            = 2, 10
)

// SourceNATRules returns the rules of this network namespace that translate source addresses. It returns
// none if the kernel has no nftables.
func SourceNATRules() (out []SourceNAT, err error) {
	c, err := nl.OpenNetfilter()
	if errors.Is(err, nl.ErrNoNetfilter) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answers, err := c.DumpNFTables("rules of nftables", unix.NFT_MSG_GETRULE, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if len(a) < 4 {
			continue
		}
		s, ok, err := source(a[4:])
		if err != nil {
			return nil, fmt.Errorf("cannot read a rule of nftables: %w", err)
		}
		switch a[0] {
		case nfprotoIPv4:
			s.Family = unix.AF_INET
		case nfprotoIPv6:
			s.Family = unix.AF_INET6
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// source parses a rule; ok is false if the rule does not translate source addresses.
func source(attrs []byte) (s SourceNAT, ok bool, err error) {
	ad, err := netlink.NewAttributeDecoder(attrs)
	if err != nil {
		return s, false, err
	}
	device := false // the next comparison is with the device's name
	for ad.Next() {
		if ad.Type() != ruleExpressions {
			continue
		}
		ad.Nested(func(list *netlink.AttributeDecoder) error {
			for list.Next() {
				list.Nested(func(e *netlink.AttributeDecoder) error {
					name, data := "", []byte(nil)
					for e.Next() {
						switch e.Type() {
						case exprName:
							name = e.String()
						case exprData:
							data = e.Bytes()
						}
					}
					was := device
					device = false
					switch name {
					case "masq":
						ok = true
					case "nat":
						kind, _ := number(data, natType)
						ok = ok || kind == natSource
					case "target":
						target := string(bytes.TrimRight(attribute(data, targetName), "\x00"))
						ok = ok || target == "MASQUERADE" || target == "SNAT"
					case "meta":
						key, _ := number(data, metaKey)
						device = key == metaOIFName
					case "cmp":
						if was {
							value := attribute(attribute(data, cmpData), dataValue)
							op, _ := number(data, cmpOp)
							s.Except = op == cmpNotEq
							s.Dev = string(bytes.TrimRight(value, "\x00"))
							s.Begins = len(s.Dev) == len(value) && len(value) < unix.IFNAMSIZ
						}
					}
					return e.Err()
				})
			}
			return list.Err()
		})
	}
	return s, ok, ad.Err()
}

// attribute returns the value of the first attribute of a type, nil if there is none.
func attribute(attrs []byte, kind uint16) []byte {
	ad, err := netlink.NewAttributeDecoder(attrs)
	if err != nil {
		return nil
	}
	for ad.Next() {
		if ad.Type() == kind {
			return ad.Bytes()
		}
	}
	return nil
}

// number returns an attribute that is a 32-bit number in network byte order.
func number(attrs []byte, kind uint16) (uint32, bool) {
	b := attribute(attrs, kind)
	if len(b) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}
