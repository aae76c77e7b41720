package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
)

// datapathID parses what fabric.ParseDPID does, hexadecimal digits after 0x, as ovs-vswitchd.conf.db(5) has it, and a
// single digit. More digits without 0x would be another id in another base.
func datapathID(s string) (fabric.DPID, error) {
	if len(s) == 1 && s >= "1" && s <= "9" {
		return fabric.DPID(s[0] - '0'), nil
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		v, err := strconv.ParseUint(hex, 16, 64)
		if err != nil || v == 0 {
			return 0, fmt.Errorf("%q is not a datapath id: write 0x1 to 0xffffffffffffffff", s)
		}
		return fabric.DPID(v), nil
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil && v > 0 && len(s) < 16 {
		if h, err := strconv.ParseUint(s, 16, 64); err == nil {
			return 0, fmt.Errorf("%q is not a datapath id: write %#x if the number is decimal, and %#x if it is hexadecimal", s, v, h)
		}
	}
	return fabric.ParseDPID(s)
}

// switchName parses a name that cannot be mistaken for an id.
func switchName(s string) (string, error) {
	name, err := serverName(s)
	if err != nil {
		return "", err
	}
	_, err = datapathID(name)
	if err == nil || strings.Trim(name, "0123456789") == "" {
		return "", fmt.Errorf("%q could be a datapath id: write a name that is not a number, for example s%s", s, s)
	}
	return name, nil
}

// maxPorts is the number of ports that a document can list at its switches. It bounds what a range such as 1-4294967040
// needs.
const maxPorts = 1 << 16

// portNames parses a port, or a range of numbers.
func (d *networkDecoder) portNames(s string) ([]fabric.PortName, error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange || first == "" || last == "" || strings.Trim(first+last, "0123456789") != "" {
		p, err := fabric.ParsePortName(s)
		return []fabric.PortName{p}, err
	}
	from, err := fabric.ParsePortName(first)
	if err != nil {
		return nil, err
	}
	to, err := fabric.ParsePortName(last)
	if err != nil {
		return nil, err
	}
	if to.No < from.No || to.No > fabric.MaxPort {
		return nil, fmt.Errorf("%q is not a range of ports: write the lowest number, a hyphen and the highest number", s)
	}
	if d.ports += int(to.No-from.No) + 1; d.ports > maxPorts {
		return nil, fmt.Errorf("with %q the document lists %d ports, and the maximum is %d: list only ports that the switch has", s, d.ports, maxPorts)
	}
	var all []fabric.PortName
	for no := from.No; no <= to.No; no++ {
		all = append(all, fabric.PortName{No: no})
	}
	return all, nil
}

func linkCost(s string) (uint16, error) {
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a cost: write 1 to 65535; the costs of a path are added, and the lowest is best", s)
	}
	return uint16(v), nil
}

// reservable parses the part of a link that can be reserved, in percent.
func reservable(s string) (uint16, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || v == 0 || v > fabric.MaxReservable {
		return 0, fmt.Errorf("%q is not a part of the capacity: write 1%% to %d%%, for example 80%%, or 150%% to over-subscribe the link", s, fabric.MaxReservable)
	}
	return uint16(v), nil
}

// measuredPart parses the part of a capacity down to which a measured one is put in force, in percent.
func measuredPart(s string) (uint16, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || v == 0 || v > 100 {
		return 0, fmt.Errorf("%q is not a part of a capacity: write 1%% to 100%%, for example 50%% to put measured capacities in force down to half of the capacity of a link", s)
	}
	return uint16(v), nil
}

func hostMAC(s string) (fabric.MAC, error) {
	m, err := fabric.ParseMAC(s)
	switch {
	case err != nil:
	case m.Group():
		err = fmt.Errorf("%q is a multicast address, which no interface has: write one whose first octet is even", s)
	case m == fabric.MAC{}:
		err = fmt.Errorf("%q is no interface's address: write the one that ip link prints", s)
	}
	return m, err
}

func hostVLAN(s string) (uint16, error) {
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil || v < 1 || v > uint64(program.MaxHostVLAN) {
		return 0, fmt.Errorf("%q is not a VLAN of hosts: write 1 to %d, or leave vlan out for untagged frames; switches need the ids above among themselves", s, program.MaxHostVLAN)
	}
	return uint16(v), nil
}

func hostIP(s string) (netip.Addr, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Addr(), fmt.Errorf("%q is a prefix: write the address alone, %s", s, p.Addr())
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		err = fmt.Errorf("%q is not an IP address: write for example 10.0.0.1 or fd00::1", s)
	}
	return a, err
}

func hostCount(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 || v > fabric.MaxHostsPerPort {
		return 0, fmt.Errorf("%q is not a number of hosts: write 1 to %d, and list ports that can have any number in trust", s, fabric.MaxHostsPerPort)
	}
	return v, nil
}

func withTLS(s string) (bool, error) {
	v, err := boolean(s)
	if err != nil {
		err = fmt.Errorf("%q is not true or false: write true (switches connect to ssl:), or false (to tcp:)", s)
	}
	return v, err
}

// switchesAddress parses an address to listen on for switches.
func switchesAddress(s string) (netip.AddrPort, error) {
	for _, scheme := range []string{"ssl:", "tcp:", "pssl:", "ptcp:"} {
		if rest, ok := strings.CutPrefix(s, scheme); ok {
			return netip.AddrPort{}, fmt.Errorf("%q has a method: write only the address, %q, and tls: %v beside it", s, rest, strings.HasSuffix(scheme, "ssl:"))
		}
	}
	if host, port, err := net.SplitHostPort(s); err == nil && host == "" {
		s = "[::]:" + port // IPv4 too
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 || a.Addr().Is4In6() {
		return netip.AddrPort{}, fmt.Errorf("%q is not an IP address and port: write for example \"0.0.0.0:%d\", or \":%d\" for IPv4 and IPv6", s, fabric.ListenPort, fabric.ListenPort)
	}
	return a, nil
}
