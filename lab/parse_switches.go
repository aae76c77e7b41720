package lab

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

func (d *document) switchSpec(key string, n ast.Node) (s SwitchSpec) {
	// A switch needs only a name.
	if name, ok := text(n); ok {
		return SwitchSpec{Name: name}
	}
	d.mapping(key, n, fields{
		"name":        scalar(d, &s.Name, word),
		"id":          scalar(d, &s.ID, datapathID),
		"fail_mode":   scalar(d, &s.FailMode, func(s string) (FailMode, error) { return FailMode(s), nil }),
		"rstp":        scalar(d, &s.RSTP, yesNo),
		"protocols":   d.words(&s.Protocols),
		"controllers": d.words(&s.Controllers),
	})
	return s
}

// words reads a list of words.
func (d *document) words(to *[]string) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		d.list(key, n, func(key string, n ast.Node) {
			var w string
			scalar(d, &w, word)(key, n)
			*to = append(*to, w)
		})
	}
}

// datapathID reads a decimal number from 1, or the 16 hexadecimal digits that Open vSwitch prints.
func datapathID(s string) (uint64, error) {
	base := 10
	if len(s) == 16 {
		base = 16
	}
	id, err := strconv.ParseUint(s, base, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%q is not a datapath id: write a number from 1, or 16 hexadecimal digits in quotes", s)
	}
	return id, nil
}

// offloadAtSwitches reports links of switches that ask for offload. An offload that is left out is off
// there.
func (d *document) offloadAtSwitches(t *Topology) {
	is := t.isSwitch()
	for i, l := range t.Links {
		key := fmt.Sprintf("links[%d].offload", i)
		if (is(l.Ends[0]) || is(l.Ends[1])) && slices.Contains(d.offloads, key) {
			d.fail(0, key, "a switch passes no packets with unfinished checksums or of several segments: leave offload out")
		}
	}
}
