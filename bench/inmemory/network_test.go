package inmemory

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
)

// A network in memory is connected, has what was asked for, and is the same each time.
func TestMemoryPlan(t *testing.T) {
	m := Network{Switches: 50, Cables: 120, Hosts: 70, Seed: 3}
	p := m.Plan()
	if len(p.Cables) != 120 || len(p.Ports) != 50 || len(p.Hosts) != 70 {
		t.Errorf("%d cables, %d switches, %d ports of hosts", len(p.Cables), len(p.Ports), len(p.Hosts))
	}
	if !reflect.DeepEqual(p, m.Plan()) {
		t.Error("it is different the second time")
	}
	topology, err := p.Topology(-1)
	if err != nil {
		t.Fatal(err)
	}
	next := topology.NextHops()
	for _, a := range topology.Switches() {
		for _, b := range topology.Switches() {
			if a.ID != b.ID && next.At(a.ID, b.ID).Best == 0 {
				t.Fatalf("no path from %v to %v", a.ID, b.ID)
			}
		}
	}
	if cut, err := p.Topology(7); err != nil || len(cut.Links()) != 238 {
		t.Errorf("%v, %v", cut, err)
	}
}

// A stream of messages is divided alike, whatever its parts.
func TestSplitter(t *testing.T) {
	var stream []byte
	var want [][]byte
	for i, m := range []openflow.Message{&openflow.EchoRequest{Data: make([]byte, 9)}, &openflow.BarrierRequest{}, &openflow.FlowMod{Match: openflow.Match{openflow.InPort(1)}}} {
		b, err := openflow.Append(nil, uint32(i), m)
		if err != nil {
			t.Fatal(err)
		}
		want, stream = append(want, b), append(stream, b...)
	}
	rapid.Check(t, func(t *rapid.T) {
		var s Splitter
		var got [][]byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			s.Add(rest[:n], func(m []byte) { got = append(got, slices.Clone(m)) })
			rest = rest[n:]
		}
		if !slices.EqualFunc(got, want, bytes.Equal) || len(s.rest) != 0 {
			t.Fatalf("%x", got)
		}
	})
}

// The child carries out orders, and sees what a controller sends.
func TestChild(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ordersIn, orders := io.Pipe()
	answersOut, answers := io.Pipe()
	ended := make(chan error)
	go func() { ended <- Child(ordersIn, answers) }()
	tell := func(o Order) (r Report) {
		t.Helper()
		if err := json.NewEncoder(orders).Encode(o); err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(answersOut).Decode(&r); err != nil || r.Error != "" {
			t.Fatal(err, r.Error)
		}
		return r
	}
	tell(Order{Do: "start", Network: &Network{Switches: 1, Controllers: []string{l.Addr().String()}}})
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.Copy(io.Discard, c)
	send := func(m openflow.Message) {
		t.Helper()
		b, err := openflow.Append(nil, 1, m)
		if err == nil {
			_, err = c.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, is func(Report) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !is(tell(Order{Do: "look"})); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after 20 s it is not so that %s", what)
			}
		}
	}
	send(openflow.NewHello(openflow.Version))
	send(&openflow.RoleRequest{Role: openflow.Role{Role: openflow.RoleMaster, GenerationID: 1}})
	until("there is a master", func(r Report) bool {
		return r.Connected == 1 && r.LastChange == 0 && r.Masters["0000000000001000"].Controller == l.Addr().String()
	})
	if r := tell(Order{Do: "look"}); r.Two != 0 || len(r.Mods) != 0 {
		t.Errorf("%+v", r)
	}
	send(&openflow.EchoRequest{})
	send(&openflow.FlowMod{Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny})
	until("a change is seen", func(r Report) bool { return r.LastChange > 0 })
	orders.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
