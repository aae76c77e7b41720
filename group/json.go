package group

import (
	"encoding/json"
	"net/netip"
	"strconv"
)

// selectorJSON is a Selector as programs read it: the words that a user writes.
type selectorJSON struct {
	Proto  []string       `json:"proto,omitempty"`
	Src    []netip.Prefix `json:"src,omitempty"`
	Dst    []netip.Prefix `json:"dst,omitempty"`
	SPort  []string       `json:"sport,omitempty"`
	DPort  []string       `json:"dport,omitempty"`
	DSCP   []string       `json:"dscp,omitempty"`
	VLAN   []uint16       `json:"vlan,omitempty"`
	Mark   []uint32       `json:"mark,omitempty"`
	Cgroup string         `json:"cgroup,omitempty"`
}

// MarshalJSON prints fields as lists of the words that a user writes; a protocol
// is a name or a number, never the word for both ICMPs.
func (s Selector) MarshalJSON() ([]byte, error) {
	proto := func(p uint8) string {
		if p == ICMP {
			return strconv.Itoa(ICMP)
		}
		return ProtoName(p)
	}
	return json.Marshal(selectorJSON{
		list(s.Proto, proto), s.Src, s.Dst, list(s.SPort, PortRange.String), list(s.DPort, PortRange.String),
		list(s.DSCP, DSCPName), s.VLAN, s.Mark, s.Cgroup,
	})
}

// UnmarshalJSON reads what MarshalJSON prints.
func (s *Selector) UnmarshalJSON(text []byte) error {
	var j selectorJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*s = Selector{Src: j.Src, Dst: j.Dst, VLAN: j.VLAN, Mark: j.Mark, Cgroup: j.Cgroup}
	for _, word := range j.Proto {
		p, err := ParseProto(word)
		if err != nil {
			return err
		}
		s.Proto = append(s.Proto, p...)
	}
	var err error
	if s.SPort, err = parseAll(j.SPort, ParsePortRange); err != nil {
		return err
	}
	if s.DPort, err = parseAll(j.DPort, ParsePortRange); err != nil {
		return err
	}
	s.DSCP, err = parseAll(j.DSCP, ParseDSCP)
	return err
}

func list[T any](values []T, f func(T) string) []string {
	if len(values) == 0 {
		return nil
	}
	return texts(values, f)
}

func parseAll[T any](words []string, parse func(string) (T, error)) (out []T, err error) {
	for _, word := range words {
		v, err := parse(word)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
