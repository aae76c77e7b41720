package lab

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
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
			{Ends: [2]string{"client", "router"}, Forward: Path{Spec: link.Spec{Delay: 5 * time.Millisecond}}, Back: Path{Spec: link.Spec{Delay: 5 * time.Millisecond}}, NoOffload: true},
			{
				Ends:    [2]string{"router", "server"},
				Forward: Path{Spec: link.Spec{Rate: 101 * unit.Mbit, Queue: link.Amount{Bytes: 65536}}},
				Back:    Path{Spec: link.Spec{Rate: 200 * unit.Mbit, Queue: link.Amount{Time: 20 * time.Millisecond}}},
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

// Every key of a direction, in its short and long form.
func TestParseDirection(t *testing.T) {
	const text = `kind: Lab
name: x
nodes: [a, b]
links:
- name: wan
  ends: [a, b]
  addresses: {ipv4: 192.0.2.0/30, ipv6: "fd01::/64"}
  late_bound: 2ms
  seed: 7
  rate: 100Mbit
  delay: 20ms
  forward:
    jitter: 2ms
    loss: 0.01%
    queue: 100 segments
    mark: 30KB
    xen: {interval: 30ms, tokens: 15kB}
    active: {on: 30ms, off: 10ms}
    exact: true
  back:
    jitter: {amount: 1ms, normal: true, reorder: true}
    loss: {to_bad: 1%, to_good: 20%, good: 0.5%, bad: 50%}
    queue: 64KiB
    red: {min: 30KB, max: 90KB, probability: 10%, weight: 0.01, ecn: true, classes: [{dscp: [8, 10], min: 10KB, max: 20KB, probability: 100%}]}
    bucket: {rate: 50Mbit, size: 20KB, peak: 90Mbit, peak_low: 60Mbit, gift: {size: 10MB, every: 20s}, police: true}
    suspension: {packets: 5, time: 2ms}
    cross: [{load: 10Mbit}, {load: 1Mbit, model: pareto, shape: 1.5, sizes: [64B, 1514B], dscp: 8, start: 1s, stop: 2s}]
`
	got, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := LinkSpec{
		Name: "wan", Ends: [2]string{"a", "b"}, LateBound: 2 * time.Millisecond, Seed: 7,
		IPv4: netip.MustParsePrefix("192.0.2.0/30"), IPv6: netip.MustParsePrefix("fd01::/64"),
		Forward: Path{Exact: true, Spec: link.Spec{
			Rate: 100 * unit.Mbit, Delay: 20 * time.Millisecond, Jitter: link.Jitter{Amount: 2 * time.Millisecond},
			Loss: link.Loss{Probability: 0.0001}, Queue: link.Amount{Segments: 100}, Mark: link.Amount{Bytes: 30_000},
			Xen:    &link.Xen{Interval: 30 * time.Millisecond, Tokens: 15_000},
			Active: &link.Active{On: 30 * time.Millisecond, Off: 10 * time.Millisecond},
		}},
		Back: Path{Spec: link.Spec{
			Rate: 100 * unit.Mbit, Delay: 20 * time.Millisecond, Jitter: link.Jitter{Amount: time.Millisecond, Normal: true, Reorder: true},
			Loss: link.Loss{ToBad: 0.01, ToGood: 0.2, Good: 0.005, Bad: 0.5}, Queue: link.Amount{Bytes: 65536},
			RED: &link.RED{
				Profile: link.Profile{Min: link.Amount{Bytes: 30_000}, Max: link.Amount{Bytes: 90_000}, Probability: 0.1}, Weight: 0.01, ECN: true,
				Classes: []link.REDClass{{DSCP: []uint8{8, 10}, Profile: link.Profile{Min: link.Amount{Bytes: 10_000}, Max: link.Amount{Bytes: 20_000}, Probability: 1}}},
			},
			Bucket: &link.Bucket{
				Rate: 50 * unit.Mbit, Size: 20_000, Peak: 90 * unit.Mbit, PeakLow: 60 * unit.Mbit,
				Gift: 10_000_000, GiftEvery: 20 * time.Second, Police: true,
			},
			Suspension: &link.Suspension{Packets: 5, Time: 2 * time.Millisecond},
			Cross: []link.Cross{
				{Load: 10 * unit.Mbit},
				{Load: unit.Mbit, Model: link.Pareto, Shape: 1.5, Sizes: []int{64, 1514}, DSCP: 8, Start: time.Second, Stop: 2 * time.Second},
			},
		}},
	}
	if !reflect.DeepEqual(got.Links[0], want) {
		t.Errorf("got  %+v\nwant %+v", got.Links[0], want)
	}
	// The state file for other processes has the topology that was read.
	var again Topology
	if b, err := json.Marshal(got); err != nil || json.Unmarshal(b, &again) != nil || !reflect.DeepEqual(&again, got) {
		t.Errorf("through JSON: %+v (%v)", again.Links[0], err)
	}
	if b := got.Backends(); b[0] != Emulator {
		t.Errorf("the backend is %s", b[0])
	}
}

// Every kind of flow.
func TestParseFlows(t *testing.T) {
	got, err := Parse("f", []byte(`kind: Lab
name: x
seed: 5
nodes: [a, b]
links: [{ends: [a, b]}]
flows:
- {name: s, from: a, to: b, ecn: true, mptcp: true, send_buffer: 1MiB, receive_buffer: 2MiB, window_clamp: 64KiB, rate: 1Mbit, start: 1s, stop: 2s, seed: 9}
- {name: o, from: a, to: b, on_off: {rate: 10Mbit, on: {kind: pareto, mean: 100ms, shape: 1.5}, off: 200ms}}
- {name: p, from: a, to: b, proto: udp, poisson: 5Mbit}
- {name: u, from: a, to: b, requests: {request: 300B, response: {kind: lognormal, mean: 20kB, shape: 1}, users: 10, think: {kind: exponential, mean: 1s}}}
- {name: r, from: a, to: b, requests: {request: 300B, response: {kind: uniform, min: 1kB, max: 9kB}, rate: 50/s, connections: 8, max_backlog: 100, reconnect: true}}
- {name: t, from: a, to: b, transfer: {size: 100MB, streams: 4, times: 3, pause: 1s}}
`))
	if err != nil {
		t.Fatal(err)
	}
	flow := func(name string, f traffic.Flow) traffic.Flow {
		f.Name, f.From, f.To = name, "a", "b"
		if f.Protocol == "" {
			f.Protocol = traffic.TCP
		}
		return f
	}
	size := traffic.Always[unit.Bytes]
	want := []traffic.Flow{
		flow("s", traffic.Flow{
			ECN: true, MPTCP: true, SendBuffer: 1 << 20, ReceiveBuffer: 2 << 20, WindowClamp: 64 << 10,
			Schedule: traffic.Constant(unit.Mbit), Start: time.Second, Stop: 2 * time.Second, Seed: 9,
		}),
		flow("o", traffic.Flow{OnOff: &traffic.OnOff{
			Rate: 10 * unit.Mbit, Off: traffic.Always(200 * time.Millisecond),
			On: traffic.Distribution[time.Duration]{Kind: traffic.Pareto, Mean: 100 * time.Millisecond, Shape: 1.5},
		}}),
		flow("p", traffic.Flow{Protocol: traffic.UDP, Poisson: &traffic.Poisson{Rate: 5 * unit.Mbit}}),
		flow("u", traffic.Flow{Requests: &traffic.Requests{
			Request: size(300), Response: traffic.Distribution[unit.Bytes]{Kind: traffic.Lognormal, Mean: 20_000, Shape: 1},
			Users: 10, Think: traffic.Distribution[time.Duration]{Kind: traffic.Exponential, Mean: time.Second},
		}}),
		flow("r", traffic.Flow{Requests: &traffic.Requests{
			Request: size(300), Response: traffic.Distribution[unit.Bytes]{Kind: traffic.Uniform, Min: 1000, Max: 9000},
			Rate: 50, Connections: 8, MaxBacklog: 100, Reconnect: true,
		}}),
		flow("t", traffic.Flow{Transfer: &traffic.Transfer{Size: 100_000_000, Streams: 4, Times: 3, Pause: time.Second}}),
	}
	if got.Seed != 5 || !reflect.DeepEqual(got.Flows, want) {
		t.Errorf("got  %+v\nwant %+v", got.Flows, want)
	}
}

// The properties that an event sets are added to the earlier ones, in its direction only.
func TestParseTimeline(t *testing.T) {
	got, err := Parse("f", []byte(`kind: Lab
name: x
nodes: [a, b]
links:
- {ends: [a, b], rate: 10Mbit}
flows: [{name: f, from: a, to: b, rate: {0s: 1Mbit, 2s: 2Mbit, 9s: 3Mbit}}]
programs: [{name: p, node: a, command: [sleep, 100]}]
timeline:
- {at: 1s, link: a-b, set: {rate: 20Mbit}}
- {at: 1s, start: f}
- {at: 2s, link: a-b, direction: back, set: {delay: 1ms}}
- {at: 3s, link: a-b, set: {rate: 30Mbit, queue: 10 segments}}
- {at: 4s, stop: f}
- {at: 5s, stop: p}
`))
	if err != nil {
		t.Fatal(err)
	}
	rate := func(r unit.Rate) *Path { return &Path{Spec: link.Spec{Rate: r * unit.Mbit}} }
	delayed := rate(20)
	delayed.Delay = time.Millisecond
	forward, back := rate(30), rate(30)
	forward.Queue.Segments, back.Queue.Segments, back.Delay = 10, 10, time.Millisecond
	want := []Event{
		{At: 1 * time.Second, Link: "a-b", Forward: rate(20), Back: rate(20)},
		{At: 1 * time.Second, Start: "f"},
		{At: 2 * time.Second, Link: "a-b", Back: delayed},
		{At: 3 * time.Second, Link: "a-b", Forward: forward, Back: back},
		{At: 4 * time.Second, Stop: "f"},
		{At: 5 * time.Second, Stop: "p"},
	}
	var words []string
	for i := range got.Timeline {
		words = append(words, got.Timeline[i].String())
		got.Timeline[i].words = ""
	}
	if !reflect.DeepEqual(got.Timeline, want) {
		t.Errorf("got  %+v\nwant %+v", got.Timeline, want)
	}
	if s := strings.Join(words, "; "); s != "set a-b {rate: 20Mbit}; start f; set a-b back {delay: 1ms}; set a-b {rate: 30Mbit, queue: 10 segments}; stop f; stop p" {
		t.Errorf("in words: %s", s)
	}
	if f := got.timedFlows()[0]; f.Start != time.Second || f.Stop != 4*time.Second || got.Flows[0].Start != 0 {
		t.Errorf("the flow is %+v, in the file %+v", f, got.Flows[0])
	}
	// Changes of a flow's rate after its stop do not make the run longer.
	if got := got.RunTime(); got != 10*time.Second {
		t.Errorf("it runs for %v", got)
	}
}

// Without a duration a run lasts until 5 s after its last change, and until its transfers have ended.
func TestRunTime(t *testing.T) {
	for _, c := range []struct {
		text      string
		want      time.Duration
		untilDone bool
	}{
		{"duration: 2s\nflows: [{name: f, from: a, to: b, transfer: {size: 1MB}}]\n", 2 * time.Second, false},
		{"flows: [{name: f, from: a, to: b, rate: 1Mbit}]\n", 5 * time.Second, false},
		{"flows: [{name: f, from: a, to: b, rate: {0s: 1Mbit, 3s: 2Mbit}, start: 1s}]\n", 9 * time.Second, false},
		{"flows: [{name: f, from: a, to: b, rate: {0s: 1Mbit, 30s: 2Mbit}, start: 1s, stop: 3s}]\n", 8 * time.Second, false},
		{"flows: [{name: f, from: a, to: b, requests: {users: 3}, start: 1s, stop: 7s}]\n", 12 * time.Second, false},
		{"flows: [{name: f, from: a, to: b, transfer: {size: 1MB}, start: 20s}]\n", 0, true},
		{"flows: [{name: f, from: a, to: b, transfer: {size: 1MB}, start: 20s}, {name: g, from: a, to: b, rate: 1Mbit}]\n", 5 * time.Second, true},
		{"flows: [{name: f, from: a, to: b, transfer: {size: 1MB}}]\nprograms: [{name: p, node: a, command: [ls]}]\n", 5 * time.Second, true},
		{"flows: [{name: f, from: a, to: b, transfer: {size: 1MB}}]\ntimeline: [{at: 4s, start: f}]\n", 9 * time.Second, true},
	} {
		got, err := Parse("f", []byte("kind: Lab\nname: x\nnodes: [a, b]\nlinks: [{ends: [a, b]}]\n"+c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got.RunTime() != c.want || got.UntilDone() != c.untilDone {
			t.Errorf("%sgives %v and %v, want %v and %v", c.text, got.RunTime(), got.UntilDone(), c.want, c.untilDone)
		}
	}
}

// The timeline removes properties that a link has at the start.
func TestParseNone(t *testing.T) {
	got, err := Parse("f", []byte(`kind: Lab
name: x
nodes: [a, b]
links:
- ends: [a, b]
  rate: 10Mbit
  bucket: {rate: 5Mbit, size: 10kB}
  red: {min: 10kB, max: 30kB, probability: 10%}
  mark: 20kB
  active: {on: 1ms, off: 1ms}
  suspension: {packets: 10, time: 1ms}
  cross: [{load: 1Mbit}]
timeline:
- {at: 1s, link: a-b, set: {bucket: none, red: none, mark: none, active: none, suspension: none, cross: []}}
- {at: 2s, link: a-b, set: {xen: {interval: 1ms, tokens: 2kB}}}
- {at: 3s, link: a-b, set: {xen: none}}
`))
	if err != nil {
		t.Fatal(err)
	}
	before, after := got.Timeline[1].Forward.Spec, got.Timeline[2].Forward.Spec
	if before.Xen == nil || after.Xen != nil {
		t.Errorf("xen is %v and then %v", before.Xen, after.Xen)
	}
	if first := got.Timeline[0].Forward.Spec; !reflect.DeepEqual(first, link.Spec{Rate: 10 * unit.Mbit}) || !reflect.DeepEqual(first, after) {
		t.Errorf("what is left is %+v", first)
	}
}

// Every error has its line, its key and a remedy.
func TestParseMistakes(t *testing.T) {
	const head = "kind: Lab\nname: x\nnodes: [a, {name: r, router: true}, b]\n"
	const flow = "flows: [{name: f, from: a, to: b, rate: 1Mbit}]\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", `f: the file is empty: begin with "kind: Lab"`},
		"no kind":        {"name: x\nnodes: [a]\n", `f: kind: not a lab: write "kind: Lab"`},
		"another kind":   {"kind: Interface\nname: x\nnodes: [a]\n", `f:1: kind: not a lab`},
		"not yaml":       {"kind: [", "f:1: "},
		"two documents":  {head + "---\nkind: Lab\n", "f:5: there is a second document"},
		"unknown key":    {head + "links:\n  - {ends: [a, r], speed: 1}\n", "f:5: links[0].speed: there is no such key: write one of active, addresses, back, backend, "},
		"key twice":      {"kind: Lab\nkind: Lab\nname: x\nnodes: [a]\n", "f:2: kind: duplicate key"},
		"bare number":    {head + "links:\n  - {ends: [a, r], rate: 100}\n", `f:5: links[0].rate: "100" is not a rate: it has no unit; write for example 100Mbit`},
		"rate of 0":      {head + "links:\n  - ends: [a, r]\n    rate: 0Mbit\n", "f:6: links[0].rate: a rate of 0 would block all traffic: leave it out"},
		"bad delay":      {head + "links:\n  - {ends: [a, r], delay: 5}\n", `f:5: links[0].delay: "5" is not a duration: write for example 10ms`},
		"bad queue":      {head + "links:\n  - {ends: [a, r], rate: 1Mbit, queue: 5}\n", `f:5: links[0].queue: "5" is not a queue length`},
		"queue, no rate": {head + "links:\n  - {ends: [a, r], queue: 5ms}\n", "f:5: links[0].queue: a queue needs a rate"},
		"one end":        {head + "links:\n  - {ends: [a]}\n", "f:5: links[0].ends: a link needs two ends"},
		"no end":         {head + "links:\n  - {rate: 1Mbit}\n", "f:5: links[0].ends: a link needs two ends"},
		"unknown end":    {head + "links:\n  - {ends: [a, x]}\n", `f:5: links[0].ends: unknown node "x"`},
		"itself":         {head + "links:\n  - {ends: [a, a]}\n", `f:5: links[0].ends: both ends are "a"`},
		"same name":      {"kind: Lab\nname: x\nnodes: [a, a]\n", `f:3: nodes[1].name: duplicate node name "a"`},
		"long name":      {"kind: Lab\nname: x\nnodes: [abcdefghijkl]\n", `f:3: nodes[0].name: "abcdefghijkl" is not a valid node name`},
		"bad sysctl":     {"kind: Lab\nname: x\nnodes:\n- name: a\n  sysctl:\n    kernel.panic: 1\n", `f:6: nodes[0].sysctl.kernel.panic: "kernel.panic" is not a network sysctl`},
		"list for map":   {head + "links: {ends: [a, b]}\n", "f:4: links: a list belongs here"},
		"map for list":   {"kind: Lab\nname: x\nnodes:\n- [a]\n", "f:4: nodes[0]: a mapping (key: value) belongs here"},
		"flow, no rate":  {head + "flows:\n- {name: f, from: a, to: b}\n", "f:5: flows[0].rate: the flow has no load"},
		"two contents":   {head + "flows:\n- {name: f, from: a, to: b, rate: 1Mbit, transfer: {size: 1MB}}\n", `f:5: flows[0].transfer: the flow also has rate: choose one`},
		"bare requests":  {head + "flows:\n- {name: f, from: a, to: b, requests: {rate: 50, request: 1kB}}\n", `f:5: flows[0].requests.rate: "50" is not a request rate: write for example 50/s`},
		"think, a rate":  {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests:\n    rate: 50/s\n    think: 1s\n", "f:10: flows[0].requests.think: the think time is for users"},
		"shape":          {head + "flows:\n- name: f\n  from: a\n  to: b\n  on_off:\n    rate: 1Mbit\n    off: 1s\n    on:\n      kind: pareto\n      mean: 1s\n      shape: 1\n", "f:14: flows[0].on_off.on.shape: the shape 1 of a Pareto distribution is not between 1.05 and 1000"},
		"kindless":       {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 1, think: {mean: 1s, shape: 2}}\n", "f:8: flows[0].requests.think: a constant has only a mean"},
		"other kind":     {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 1, think: {mean: 1s, kind: normal}}\n", `f:8: flows[0].requests.think.kind: "normal" is not a distribution: write constant, uniform,`},
		"distribution":   {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 1, response: {exponential: 1kB}}\n", "f:8: flows[0].requests.response.exponential: there is no such key: write one of kind, max, mean, min, shape"},
		"bare size":      {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 1, response: 1000}\n", `f:8: flows[0].requests.response: "1000" is not a size`},
		"users and rate": {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 1, rate: 1/s}\n", "f:8: flows[0].requests: requests come from users or at a rate: set one of the two"},
		"no users":       {head + "flows:\n- name: f\n  from: a\n  to: b\n  requests: {users: 0}\n", `f:8: flows[0].requests.users: "0" is not a whole number from 1`},
		"tcp poisson":    {head + "flows:\n- name: f\n  from: a\n  to: b\n  poisson: 1Mbit\n", "f:8: flows[0].poisson: tcp segments its data itself: write proto: udp, or give messages with rate and size"},
		"udp messages":   {head + "flows:\n- name: f\n  from: a\n  to: b\n  proto: udp\n  poisson: {rate: 1Mbit, size: 9kB}\n", "f:9: flows[0].poisson.size: the size of datagrams is the flow's payload: leave size out, or proto: udp"},
		"on-off, no off": {head + "flows:\n- name: f\n  from: a\n  to: b\n  on_off: {rate: 1Mbit, on: 1s}\n", "f:8: flows[0].on_off.off: the mean is less than 1ms: write for example 200ms"},
		"empty transfer": {head + "flows:\n- name: f\n  from: a\n  to: b\n  transfer: {streams: 4}\n", "f:8: flows[0].transfer.size: 0B is less than one byte for each stream: write for example 100MB"},
		"udp transfer":   {head + "flows:\n- name: f\n  from: a\n  to: b\n  proto: udp\n  transfer: {size: 1MB}\n", "f:9: flows[0].transfer: only for tcp: leave proto out"},
		"small buffer":   {head + "flows:\n- name: f\n  from: a\n  to: b\n  rate: 1Mbit\n  send_buffer: 1KiB\n", "f:9: flows[0].send_buffer: 1KiB is not between 2KiB and 1GiB"},
		"udp mptcp":      {head + "flows:\n- name: f\n  from: a\n  to: b\n  proto: udp\n  rate: 1Mbit\n  mptcp: true\n", "f:10: flows[0].mptcp: only for tcp, but the flow is udp: leave it out"},
		"stop first":     {head + "flows:\n- name: f\n  from: a\n  to: b\n  rate: 1Mbit\n  start: 3s\n  stop: 2s\n", "f:10: flows[0].stop: the flow stops at 2s and starts at 3s: set a stop after the start"},
		"stop at 0":      {head + "flows:\n- name: f\n  from: a\n  to: b\n  rate: 1Mbit\n  stop: 0s\n", `f:9: flows[0].stop: "0s" is not above 0`},
		"never starts":   {head + "duration: 2s\nflows:\n- name: f\n  from: a\n  to: b\n  rate: 1Mbit\n  start: 2s\n", "f:10: flows[0].start: 2s is not before the end of the run, at 2s"},
		"seed":           {head + "flows:\n- name: f\n  from: a\n  to: b\n  rate: 1Mbit\n  seed: 0\n", `f:9: flows[0].seed: "0" is not a seed: write a whole number from 1`},
		"flow to nobody": {head + "flows:\n- {name: f, from: a, to: z, rate: 1Mbit}\n", `f:5: flows[0].to: unknown node "z"`},
		"flow protocol":  {head + "flows:\n- {name: f, from: a, to: b, proto: sctp, rate: 1Mbit}\n", `f:5: flows[0].proto: "sctp" is not a protocol`},
		"flow schedule":  {head + "flows:\n- {name: f, from: a, to: b, rate: {5s: 1Mbit, 2s: 2Mbit}}\n", "times must increase from 0"},
		"port":           {head + "flows:\n- {name: f, from: a, to: b, dport: 70000, rate: 1Mbit}\n", `f:5: flows[0].dport: "70000" is not a number from 0 to 65535`},
		"switch":         {"kind: Lab\nname: x\nnodes:\n- a\n- {name: s, switch: true}\n", "f:5: nodes[1].switch: a switch is not a node: list it under switches"},
		"one direction":  {head + "links:\n- ends: [a, r]\n  rate: 1Mbit\n  back:\n    queue: 1B\n", "f:8: links[0].back.queue: 1B does not hold one frame"},
		"backend":        {head + "links:\n- ends: [a, r]\n  backend: wire\n", `f:6: links[0].backend: "wire" is not a backend: write veth, netem or emulator`},
		"veth":           {head + "links:\n- ends: [a, r]\n  delay: 1ms\n  loss: 1%\n  backend: veth\n", "f:8: links[0].backend: veth has no delay, no loss: write emulator"},
		"link name":      {head + "links:\n- {ends: [a, r]}\n- {ends: [r, b], name: a-r}\n", `f:6: links[1].name: duplicate link name "a-r"`},
		"bad link name":  {head + "links:\n- {ends: [a, r], name: ../x}\n", `f:5: links[0].name: "../x" is not a valid link name`},
		"jitter":         {head + "links:\n- ends: [a, r]\n  delay: 1ms\n  jitter: 2ms\n", "f:7: links[0].jitter: 2ms is more than the delay of 1ms"},
		"bare loss":      {head + "links:\n- {ends: [a, r], loss: 0.1}\n", `f:5: links[0].loss: "0.1" is not a percentage from 0% to 100%: write for example 1%`},
		"two states":     {head + "links:\n- ends: [a, r]\n  loss: {to_bad: 1%, bad: 50%}\n", "f:6: links[0].loss.to_good: the link would never leave the bad state"},
		"red":            {head + "links:\n- ends: [a, r]\n  rate: 1Mbit\n  red:\n    min: 30KB\n    max: 20KB\n    probability: 10%\n", "f:9: links[0].red.max: max is not above min"},
		"codel":          {head + "links:\n- ends: [a, r]\n  rate: 1Mbit\n  codel: {target: 200ms}\n", "f:7: links[0].codel.target: 200ms is not below the interval of 100ms"},
		"codel, red":     {head + "links:\n- ends: [a, r]\n  rate: 1Mbit\n  codel: {}\n  red: {min: 30KB, max: 90KB, probability: 10%}\n", "f:7: links[0].codel: the direction also has red: choose one"},
		"red class":      {head + "links:\n- ends: [a, r]\n  rate: 1Mbit\n  red:\n    min: 30KB\n    max: 90KB\n    probability: 10%\n    classes:\n    - {dscp: [64], min: 30KB, max: 90KB, probability: 50%}\n", `f:12: links[0].red.classes[0].dscp[0]: "64" is not a number from 0 to 63`},
		"bucket":         {head + "links:\n- ends: [a, r]\n  bucket: {rate: 10Mbit}\n", "f:6: links[0].bucket.size: 0B is not between"},
		"two limiters":   {head + "links:\n- ends: [a, r]\n  bucket: {rate: 10Mbit, size: 10KB}\n  xen: {interval: 10ms, tokens: 10KB}\n", "f:7: links[0].xen: the direction also has a bucket"},
		"cross":          {head + "links:\n- ends: [a, r]\n  rate: 10Mbit\n  cross:\n  - {load: 5Mbit, model: gauss}\n", `f:8: links[0].cross[0].model: "gauss" is not a model`},
		"cross, no rate": {head + "links:\n- ends: [a, r]\n  cross:\n  - {load: 5Mbit}\n", "f:7: links[0].cross[0]: cross traffic needs a rate"},
		"no network":     {head + "links:\n- {ends: [a, r], addresses: {ipv4: 10.0.0}}\n", `f:5: links[0].addresses.ipv4: "10.0.0" is not a network`},
		"host bits":      {head + "links:\n- {ends: [a, r], addresses: {ipv4: 192.0.2.1/24}}\n", "f:5: links[0].addresses.ipv4: 192.0.2.1/24 is an address in a network: write the network, 192.0.2.0/24"},
		"one address":    {head + "links:\n- {ends: [a, r], addresses: {ipv6: 'fd01::/127'}}\n", "f:5: links[0].addresses.ipv6: fd01::/127 is too small for two ends"},
		"loopback":       {head + "links:\n- {ends: [a, r], addresses: {ipv4: 127.1.0.0/16}}\n", "f:5: links[0].addresses.ipv4: addresses in 127.1.0.0/16 cannot be assigned to hosts"},
		"wrong version":  {head + "links:\n- {ends: [a, r], addresses: {ipv4: 'fd01::/64'}}\n", "f:5: links[0].addresses.ipv4: fd01::/64 is of the other IP version"},
		"same network":   {head + "links:\n- ends: [a, r]\n  addresses: {ipv4: 192.0.2.0/24}\n- ends: [r, b]\n  addresses: {ipv4: 192.0.2.0/25}\n", "f:8: links[1].addresses.ipv4: 192.0.2.0/25 overlaps 192.0.2.0/24 of link a-r"},
		"taken network":  {head + "links:\n- ends: [a, r]\n  addresses: {ipv4: 10.0.0.0/16}\n- ends: [r, b]\n", "f:6: links[0].addresses.ipv4: 10.0.0.0/16 overlaps 10.0.1.0/24 of link r-b"},
		"no time":        {head + flow + "timeline:\n- {start: f}\n", "f:6: timeline[0].at: no time"},
		"back in time":   {head + flow + "timeline:\n- {at: 2s, start: f}\n- {at: 1s, stop: f}\n", "f:7: timeline[1].at: 1s is before the event above it, at 2s"},
		"too late":       {head + flow + "duration: 2s\ntimeline:\n- {at: 2s, start: f}\n", "f:7: timeline[0].at: 2s is not before the end of the run, at 2s"},
		"start itself":   {head + "flows: [{name: f, from: a, to: b, rate: 1Mbit, start: 1s}]\ntimeline:\n- {at: 2s, stop: f}\n", `f:6: timeline[0]: flow "f" has its own start or stop`},
		"stop as begun":  {head + flow + "timeline:\n- {at: 0s, stop: f}\n", `f:6: timeline[0].stop: flow "f" starts at 0s: it can only stop after that`},
		"stop at once":   {head + flow + "timeline:\n- {at: 1s, start: f}\n- {at: 1s, stop: f}\n", `f:7: timeline[1].stop: flow "f" starts at 1s: it can only stop after that`},
		"start nothing":  {head + flow + "timeline:\n- {at: 2s, start: g}\n", `f:6: timeline[0]: unknown flow or program "g"`},
		"start twice":    {head + flow + "timeline:\n- {at: 2s, start: f}\n- {at: 3s, start: f}\n", `f:7: timeline[1].start: "f" was started or stopped before`},
		"two things":     {head + flow + "timeline:\n- {at: 2s, start: f, stop: f}\n", "f:6: timeline[0]: an event has one action"},
		"nothing":        {head + flow + "timeline:\n- {at: 2s}\n", "f:6: timeline[0]: an event has one action"},
		"what link":      {head + flow + "timeline:\n- {at: 2s, set: {rate: 1Mbit}}\n", "f:6: timeline[0].link: no link"},
		"no link":        {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- {at: 2s, link: r-a, set: {rate: 1Mbit}}\n", `f:7: timeline[0].link: unknown link "r-a": links are a-r`},
		"set nothing":    {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- {at: 2s, link: a-r}\n", "f:7: timeline[0].set: nothing is set"},
		"set what":       {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- {at: 2s, link: a-r, set: {speed: 1}}\n", "f:7: timeline[0].set.speed: there is no such key"},
		"set badly":      {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- at: 2s\n  link: a-r\n  set:\n    queue: 5ms\n", "f:10: timeline[0].set.queue: a queue needs a rate"},
		"set direction":  {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- {at: 2s, link: a-r, direction: up, set: {rate: 1Mbit}}\n", `f:7: timeline[0].direction: "up" is not a direction`},
		"veth, delay":    {head + flow + "links: [{ends: [a, r], backend: veth}]\ntimeline:\n- at: 2s\n  link: a-r\n  set: {delay: 1ms}\n", "f:9: timeline[0].set: the link's backend is veth, which has no delay"},
		"veth, no rate":  {head + flow + "links: [{ends: [a, r], backend: veth}]\ntimeline:\n- at: 2s\n  link: a-r\n  set: {rate: 1Mbit}\n", "f:9: timeline[0].set: veth can change the rate of a running link, but cannot add"},
		"set exact":      {head + flow + "links: [{ends: [a, r]}]\ntimeline:\n- at: 2s\n  link: a-r\n  set: {exact: true}\n", "f:9: timeline[0].set: exact cannot change on a running link"},
		"program node":   {head + "programs:\n- {name: p, node: z, command: [ls]}\n", `f:5: programs[0].node: unknown node "z"`},
		"program twice":  {head + flow + "programs:\n- {name: f, node: a, command: [ls]}\n", `f:6: programs[0].name: duplicate flow or program name "f"`},
		"program path":   {head + "programs:\n- {name: ../p, node: a, command: [ls]}\n", `f:5: programs[0].name: "../p" is not a valid program name`},
		"no command":     {head + "programs:\n- {name: p, node: a}\n", "f:5: programs[0].command: no command"},
		"no duration":    {head + "duration: 0s\n", "f:4: duration: the duration is 0"},
		"no setting":     {"kind: Lab\nname: x\nnodes:\n- name: a\n  sysctl:\n    net.ipv4.nonsense: 1\n", "f:6: nodes[0].sysctl.net.ipv4.nonsense: this kernel has no sysctl net.ipv4.nonsense"},
		"no router":      {"kind: Lab\nname: x\nnodes: [a, m, b]\nlinks: [{ends: [a, m]}, {ends: [m, b]}]\n" + flow, `f:5: flows[0].to: "a" cannot reach "b": node "m" between them does not forward packets; write router: true`},
		"no way":         {"kind: Lab\nname: x\nnodes: [a, m, n, b]\nlinks: [{ends: [a, m]}, {ends: [n, b]}]\n" + flow, `f:5: flows[0].to: there is no path from "a" to "b"`},
		"not joined":     {head + "links: [{ends: [a, r]}]\n" + flow, `f:5: flows[0].to: node "b" has no link and therefore no address`},
		"congestion":     {head + "links: [{ends: [a, r]}, {ends: [r, b]}]\nflows: [{name: f, from: a, to: b, rate: 1Mbit, congestion: bogus}]\n", `f:5: flows[0].congestion: this kernel has no congestion control "bogus": choose one of`},
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

// All errors of a file are reported at once.
func TestParseReportsAllErrors(t *testing.T) {
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
	f.Add("kind: Lab\nname: x\nnodes: [a, b]\nlinks: [{ends: [a, b], rate: 1Mbit, red: {min: 9KB, max: 99KB, probability: 5%}, addresses: {ipv4: 192.0.2.0/24}}]\nprograms: [{name: p, node: a, command: [ls]}]\ntimeline: [{at: 1s, link: a-b, set: {loss: {to_bad: 1%, to_good: 5%}}}, {at: 2s, stop: p}]\n")
	f.Add("kind: Lab\nname: x\nnodes: [a, {name: r, router: true}, b]\nswitches: [{name: s, id: 7, fail_mode: standalone, rstp: true, protocols: [OpenFlow13], controllers: [a:6653, unix:c]}, t]\nlinks: [{ends: [a, s]}, {ends: [s, t]}, {ends: [t, r], addresses: {ipv4: 192.0.2.7/24}}, {ends: [r, b]}]\n")
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
			// An accepted topology has devices and addresses.
			top.Devices()
			top.RunTime()
			top.ports()
			addresses := top.addressing()
			for _, n := range top.Nodes {
				top.routes(n.Name, addresses)
			}
		}
	})
}
