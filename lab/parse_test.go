package lab

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"headgate/lab/traffic"
	"headgate/unit"
)

const example = `kind: Lab
name: demo
nodes:
  - client
  - {name: router, router: true}
  - {name: server, sysctl: {net.ipv4.tcp_ecn: 1}}
links:
  - {ends: [client, router], delay: 5ms, offload: false}
  - ends: [router, server]
    rate: 200Mbit
    forward: {rate: 101Mbit, queue: 64KiB}
    back: {queue: 20ms}
flows:
  - {name: a, from: client, to: server, dport: 5001, rate: 60Mbit}
  - {name: b, from: client, to: server, proto: udp, ipv6: true, payload: 1000B, rate: {0s: 10Mbit, 5s: unlimited}}
duration: 10s
`

func TestParse(t *testing.T) {
	got, err := Parse("lab.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := &Topology{
		Name:  "demo",
		Nodes: []NodeSpec{{Name: "client"}, {Name: "router", Router: true}, {Name: "server", Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"}}},
		Links: []LinkSpec{
			{Ends: [2]string{"client", "router"}, Forward: Path{Delay: 5 * time.Millisecond}, Back: Path{Delay: 5 * time.Millisecond}, NoOffload: true},
			{
				Ends:    [2]string{"router", "server"},
				Forward: Path{Rate: 101 * unit.Mbit, Queue: Queue{Bytes: 65536}},
				Back:    Path{Rate: 200 * unit.Mbit, Queue: Queue{Time: 20 * time.Millisecond}},
			},
		},
		Flows: []traffic.Flow{
			{Name: "a", From: "client", To: "server", Protocol: "tcp", DstPort: 5001, Schedule: traffic.Constant(60 * unit.Mbit)},
			{
				Name: "b", From: "client", To: "server", Protocol: "udp", IPv6: true, Payload: 1000,
				Schedule: []traffic.Step{{Rate: 10 * unit.Mbit}, {At: 5 * time.Second, Rate: traffic.Unlimited}},
			},
		},
		Duration: 10 * time.Second,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every mistake has its line, its key and a remedy.
func TestParseMistakes(t *testing.T) {
	const head = "kind: Lab\nname: x\nnodes: [a, {name: r, router: true}, b]\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", `f: the file is empty: begin with "kind: Lab"`},
		"no kind":        {"name: x\nnodes: [a]\n", `f: kind: this is no lab: write "kind: Lab"`},
		"another kind":   {"kind: Interface\nname: x\nnodes: [a]\n", `f:1: kind: this is no lab`},
		"not yaml":       {"kind: [", "f:1: "},
		"two documents":  {head + "---\nkind: Lab\n", "f:5: there is a second document"},
		"unknown key":    {head + "links:\n  - {ends: [a, r], speed: 1}\n", "f:5: links[0].speed: there is no such key: write one of back, delay, ends, forward, offload, queue, rate"},
		"key twice":      {"kind: Lab\nkind: Lab\nname: x\nnodes: [a]\n", "f:2: kind: the key is there twice"},
		"bare number":    {head + "links:\n  - {ends: [a, r], rate: 100}\n", `f:5: links[0].rate: "100" is not a rate: it has no unit; write for example 100Mbit`},
		"rate of 0":      {head + "links:\n  - ends: [a, r]\n    rate: 0Mbit\n", "f:6: links[0].rate: a rate of 0 lets nothing through: leave it out"},
		"bad delay":      {head + "links:\n  - {ends: [a, r], delay: 5}\n", `f:5: links[0].delay: "5" is not a length of time: write for example 10ms`},
		"bad queue":      {head + "links:\n  - {ends: [a, r], rate: 1Mbit, queue: 5}\n", `f:5: links[0].queue: "5" is not a length of a queue`},
		"queue, no rate": {head + "links:\n  - {ends: [a, r], queue: 5ms}\n", "f:5: links[0].forward.queue: a queue needs a rate"},
		"one end":        {head + "links:\n  - {ends: [a]}\n", "f:5: links[0].ends: a link has two ends"},
		"no end":         {head + "links:\n  - {rate: 1Mbit}\n", "f:5: links[0].ends: a link has two ends"},
		"unknown end":    {head + "links:\n  - {ends: [a, x]}\n", `f:5: links[0].ends: there is no node "x"`},
		"itself":         {head + "links:\n  - {ends: [a, a]}\n", `f:5: links[0].ends: both ends are "a"`},
		"same name":      {"kind: Lab\nname: x\nnodes: [a, a]\n", `f:3: nodes[1].name: there are two nodes "a"`},
		"long name":      {"kind: Lab\nname: x\nnodes: [abcdefghijkl]\n", `f:3: nodes[0].name: "abcdefghijkl" is not a name`},
		"bad sysctl":     {"kind: Lab\nname: x\nnodes:\n- name: a\n  sysctl:\n    kernel.panic: 1\n", `f:6: nodes[0].sysctl.kernel.panic: "kernel.panic" is not a network setting`},
		"list for map":   {head + "links: {ends: [a, b]}\n", "f:4: links: a list belongs here"},
		"map for list":   {"kind: Lab\nname: x\nnodes:\n- [a]\n", "f:4: nodes[0]: a mapping (key: value) belongs here"},
		"flow, no rate":  {head + "flows:\n- {name: f, from: a, to: b}\n", "f:5: flows[0].rate: the flow offers nothing"},
		"flow to nobody": {head + "flows:\n- {name: f, from: a, to: z, rate: 1Mbit}\n", `f:5: flows[0].to: there is no node "z"`},
		"flow protocol":  {head + "flows:\n- {name: f, from: a, to: b, proto: sctp, rate: 1Mbit}\n", `f:5: flows[0]: flow "f": "sctp" is not a protocol`},
		"flow schedule":  {head + "flows:\n- {name: f, from: a, to: b, rate: {5s: 1Mbit, 2s: 2Mbit}}\n", "times rise from 0"},
		"port":           {head + "flows:\n- {name: f, from: a, to: b, dport: 70000, rate: 1Mbit}\n", `f:5: flows[0].dport: "70000" is not a number from 0 to 65535`},
		"alias":          {"kind: Lab\nname: &n x\nnodes: [*n]\n", "a single value belongs here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
			if err != nil && !errors.Is(err, ErrConfig) {
				t.Error("the error is not an ErrConfig")
			}
		})
	}
}

// All mistakes of a file are told at once.
func TestParseTellsAll(t *testing.T) {
	_, err := Parse("f", []byte("kind: Lab\nnodes: [a]\nfoo: 1\nlinks:\n- {ends: [a], rate: 5, delay: x}\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four lines, have:\n%v", err)
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load("/nonexistent/lab.yaml")
	if !errors.Is(err, ErrConfig) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("kind: Lab\nname: x\nnodes: [a, {name: r, router: true}]\nlinks: [{ends: [a, r]}]\n")
	f.Add("a: &x [*x]\n---\n? {b: c}\n: !!int 4")
	f.Fuzz(func(t *testing.T, text string) {
		top, err := Parse("f", []byte(text))
		if (top == nil) == (err == nil) {
			t.Fatalf("topology %v with error %v", top, err)
		}
		if err != nil && !errors.Is(err, ErrConfig) {
			t.Fatalf("not an ErrConfig: %v", err)
		}
		if top != nil {
			// What is accepted can be laid out.
			top.Devices()
			for _, n := range top.Nodes {
				top.routes(n.Name)
			}
		}
	})
}
