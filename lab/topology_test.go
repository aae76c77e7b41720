package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The diamond topology, where no path leads through c, because c is a host:
//
//	a ── r1 ── r2 ── b      d
//	      └─ c ─┘
func diamond() *Topology {
	link := func(a, b string) LinkSpec { return LinkSpec{Ends: [2]string{a, b}} }
	return &Topology{
		Name: "diamond",
		Nodes: []NodeSpec{
			{Name: "a"}, {Name: "r1", Router: true}, {Name: "r2", Router: true}, {Name: "b"}, {Name: "c"}, {Name: "d"},
		},
		Links: []LinkSpec{link("a", "r1"), link("r1", "r2"), link("r2", "b"), link("r1", "c"), link("c", "r2")},
	}
}

func TestRoutes(t *testing.T) {
	top := diamond()
	addresses := top.addressing()
	for node, want := range map[string]string{
		"a":  "[{1 {0 0} {0 1}} {3 {0 0} {0 1}} {2 {0 0} {0 1}} {4 {0 0} {0 1}}]",
		"r1": "[{2 {1 0} {1 1}} {4 {1 0} {1 1}}]",
		"b":  "[{1 {2 1} {2 0}} {4 {2 1} {2 0}} {0 {2 1} {2 0}} {3 {2 1} {2 0}}]",
		"c":  "[{0 {3 1} {3 0}} {1 {3 1} {3 0}} {2 {4 0} {4 1}}]",
		"d":  "[]",
	} {
		if got := fmt.Sprint(top.routes(node, addresses)); got != want {
			t.Errorf("routes of %s: %s, want %s", node, got, want)
		}
	}
}

func TestDevices(t *testing.T) {
	top := &Topology{
		Name: "x", Nodes: []NodeSpec{{Name: "a"}, {Name: "b"}},
		Links: []LinkSpec{{Ends: [2]string{"a", "b"}}, {Ends: [2]string{"b", "a"}}},
	}
	var got []string
	for _, d := range top.Devices() {
		got = append(got, fmt.Sprintf("%s:%s %v %v", d.Node, d.Device, d.IPv4, d.IPv6))
	}
	want := "a:b 10.0.0.1/24 fd00::1/64, b:a 10.0.0.2/24 fd00::2/64, b:a-2 10.0.1.1/24 fd00:0:0:1::1/64, a:b-2 10.0.1.2/24 fd00:0:0:1::2/64"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestValidate(t *testing.T) {
	if err := diamond().Validate(); err != nil {
		t.Errorf("a good topology: %v", err)
	}
	bad := diamond()
	bad.Name = "with space"
	bad.Nodes[1].Name = "all"
	bad.Nodes[5].Name = "b"
	err := bad.Validate()
	if !errors.Is(err, ErrConfig) {
		t.Fatalf("error is %v, not an ErrConfig", err)
	}
	for _, want := range []string{`name: "with space"`, `nodes[1].name: "all"`, `duplicate node name "b"`, `links[0].ends: unknown node "r1"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not have %s:\n%v", want, err)
		}
	}
}
