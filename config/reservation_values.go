package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// endpoint parses an end of a reservation: h1, 10.0.0.1, host h1, site north, 10.0.0.0/8 or vlan 7. An address is the host that has it, as on the command line.
func endpoint(s string) (reserve.Endpoint, error) {
	kind, name, two := strings.Cut(s, " ")
	name = strings.TrimSpace(name)
	switch {
	case two && kind == "host":
		return hostEnd(name)
	case two && kind == "site":
		name, err := serverName(name)
		return reserve.Endpoint{Kind: reserve.Site, Name: name}, err
	case two && kind == "vlan":
		v, err := strconv.ParseUint(name, 10, 16)
		if err != nil || v < 1 || v > uint64(program.MaxHostVLAN) {
			return reserve.Endpoint{}, fmt.Errorf("%q is not a VLAN of hosts: write vlan 1 to vlan %d", s, program.MaxHostVLAN)
		}
		return reserve.Endpoint{Kind: reserve.VLAN, Name: strconv.FormatUint(v, 10), VLAN: uint16(v)}, nil
	case two:
		return reserve.Endpoint{}, endpointError(s)
	case isAddress(s):
		return hostEnd(s)
	case strings.ContainsAny(s, "/:"):
		p, err := group.ParsePrefix(s)
		return reserve.Endpoint{Kind: reserve.Prefix, Name: p.String(), Prefix: p}, err
	}
	return hostEnd(s)
}

func hostEnd(name string) (reserve.Endpoint, error) {
	if _, err := serverName(name); err != nil && !isAddress(name) {
		return reserve.Endpoint{}, endpointError(name)
	}
	return reserve.HostNamed(name), nil
}

func endpointError(s string) error {
	return fmt.Errorf("%q is not an end of a reservation: write the name or the address of a host, a prefix such as 10.0.0.0/8, site NAME, or vlan NUMBER", s)
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// endpointText prints what endpoint parses.
func endpointText(e reserve.Endpoint) string {
	switch e.Kind {
	case reserve.Prefix:
		return e.Prefix.String()
	case reserve.Host:
		return e.Name
	}
	return e.String()
}

func reservationClass(s string) (int, error) {
	number := s
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "qos"); ok {
		number = rest
	}
	v, err := strconv.Atoi(number)
	if err != nil || v < 1 || v > reserve.Classes {
		return 0, fmt.Errorf("%q is not a class: write 1 (or QoS1), which is served first, to %d", s, reserve.Classes)
	}
	return v, nil
}

// startTime parses a time, or now, which is the zero time.
func startTime(s string) (time.Time, error) {
	if s == "now" {
		return time.Time{}, nil
	}
	t, err := timestamp(s)
	if err != nil {
		err = fmt.Errorf("%w, or now", err)
	}
	return t, err
}

func timestamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a time: write date, time and zone as in 2030-01-31T22:00:00Z or 2030-01-31T22:00:00+01:00", s)
	}
	if t = t.UTC(); t.Unix() < 0 { // the zero time would be now
		return t, fmt.Errorf("%s is in the past: write a later time", s)
	}
	return t, nil
}

func lasting(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write for example 30m or 2h; a day is 24h", s)
	}
	if v <= 0 {
		return 0, fmt.Errorf("a reservation of %s reserves nothing: write for example 2h", s)
	}
	return v, nil
}

func reservedVolume(s string) (unit.Bytes, error) {
	v, err := unit.ParseBytes(s)
	if err == nil && v == 0 {
		err = errors.New("a volume of 0 moves nothing: write for example 500GB, or remove the key")
	}
	return v, err
}

func pathCount(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 || v > reserve.MaxPaths {
		return 0, fmt.Errorf("%q is not a number of disjoint paths: write 1 to %d", s, reserve.MaxPaths)
	}
	return v, nil
}

const pushOnDemand = "on-demand"

// onDemand parses when the switches of a path get what a reservation needs.
func onDemand(s string) (bool, error) {
	switch s {
	case "ahead":
		return false, nil
	case pushOnDemand:
		return true, nil
	}
	return false, fmt.Errorf("%q is not when switches are programmed: write ahead, before the reservation begins, or %s, when its first packet comes", s, pushOnDemand)
}

const carryByRelay = "relay"

// carry parses what carries the traffic.
func carry(s string) (*reserve.Carried, error) {
	if s == carryByRelay {
		return &reserve.Carried{}, nil
	}
	return nil, fmt.Errorf("%q does not carry traffic: write %s, or remove the key", s, carryByRelay)
}

func disjointness(s string) (fabric.Disjointness, error) {
	switch s {
	case "links":
		return fabric.ByLink, nil
	case "switches":
		return fabric.BySwitch, nil
	}
	return 0, fmt.Errorf("%q is not what paths must not share: write links, or switches (and routers) for both", s)
}

// flowProtocols are the names of protocols, by their numbers (IANA, protocol-numbers). icmp is that of IPv4 alone.
var flowProtocols = map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 33: "dccp", 58: "icmpv6", 132: "sctp"}

func flowProtocol(s string) (uint8, error) {
	for number, name := range flowProtocols {
		if s == name {
			return number, nil
		}
	}
	v, err := strconv.ParseUint(s, 10, 8)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is not a protocol: write tcp, udp, dccp, sctp, icmp, icmpv6 or a number from 1 to 255, or remove the key for all", s)
	}
	return uint8(v), nil
}

func flowProtocolText(number uint8) string {
	if name, ok := flowProtocols[number]; ok {
		return name
	}
	return strconv.Itoa(int(number))
}

func flowPorts(s string) (reserve.Ports, error) {
	p, err := ports(s)
	return reserve.Ports{First: p.From, Last: p.To}, err
}

func flowPortsText(p reserve.Ports) string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}
