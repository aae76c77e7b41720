package group

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	VLAN   []word         `json:"vlan,omitempty"`
	PCP    []word         `json:"pcp,omitempty"`
	Mark   []word         `json:"mark,omitempty"`
	SMAC   []string       `json:"smac,omitempty"`
	Cgroup string         `json:"cgroup,omitempty"`
	Not    exclusions     `json:"not,omitempty"`
}

// word is a number, or a text such as a range or a number with its mask.
type word string

func (w word) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(w), 10, 32); err == nil {
		return []byte(w), nil
	}
	return json.Marshal(string(w))
}

func (w *word) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = word(s)
		return nil
	}
	var n uint32
	if err := json.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("%s is no whole number from 0 to 4294967295, and no text", text)
	}
	*w = word(strconv.FormatUint(uint64(n), 10))
	return nil
}

// exclusions are one mapping, as a user writes it, or a list of those that groups around each
// other have.
type exclusions []Selector

func (x exclusions) MarshalJSON() ([]byte, error) {
	if len(x) == 1 {
		return json.Marshal(x[0])
	}
	return json.Marshal([]Selector(x))
}

func (x *exclusions) UnmarshalJSON(text []byte) error {
	list := []Selector{{}}
	var err error
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		err = json.Unmarshal(text, &list)
	} else {
		err = json.Unmarshal(text, &list[0])
	}
	for _, s := range list {
		if err == nil && len(s.Not) > 0 {
			err = errors.New("there is no \"not\" inside \"not\": write what is to match without it")
		}
	}
	*x = list
	return err
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
		list(s.DSCP, DSCPText), words(s.VLAN), words(s.PCP), words(s.Mark), list(s.SMAC, MAC.String), s.Cgroup, s.Not,
	})
}

// UnmarshalJSON reads what MarshalJSON prints.
func (s *Selector) UnmarshalJSON(text []byte) error {
	var j selectorJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*s = Selector{Src: j.Src, Dst: j.Dst, Cgroup: j.Cgroup, Not: j.Not}
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
	if s.DSCP, err = parseAll(j.DSCP, ParseDSCPRange); err != nil {
		return err
	}
	if s.VLAN, err = parseAll(j.VLAN, ParseVLAN); err != nil {
		return err
	}
	if s.PCP, err = parseAll(j.PCP, ParsePCP); err != nil {
		return err
	}
	if s.Mark, err = parseAll(j.Mark, ParseMark); err != nil {
		return err
	}
	s.SMAC, err = parseAll(j.SMAC, ParseMAC)
	return err
}

func words[T fmt.Stringer](values []T) (out []word) {
	for _, v := range values {
		out = append(out, word(v.String()))
	}
	return out
}

func list[T any](values []T, f func(T) string) []string {
	if len(values) == 0 {
		return nil
	}
	return texts(values, f)
}

func parseAll[T any, W ~string](words []W, parse func(string) (T, error)) (out []T, err error) {
	for _, word := range words {
		v, err := parse(string(word))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
