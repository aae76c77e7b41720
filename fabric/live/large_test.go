package live

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
)

// openSwitch opens a session with a switch that has so many ports, all of them up. It is asked nothing but the handshake.
func openSwitch(ctx context.Context, id fabric.DPID, ports int) (*session.Conn, error) {
	ours, theirs := net.Pipe()
	go serve(theirs, func(m openflow.Message) openflow.Message {
		switch m := m.(type) {
		case *openflow.Hello:
			return openflow.NewHello(openflow.Version)
		case *openflow.FeaturesRequest:
			return &openflow.FeaturesReply{DatapathID: uint64(id), Tables: 254}
		case *openflow.EchoRequest:
			return &openflow.EchoReply{Data: m.Data}
		case *openflow.MultipartRequest:
			switch m.Body.(type) {
			case *openflow.DescRequest:
				return &openflow.MultipartReply{Body: &openflow.Desc{}}
			case *openflow.PortDescRequest:
				var all []openflow.Port
				for no := range ports {
					all = append(all, openflow.Port{No: openflow.PortNo(no + 1), Name: fmt.Sprint("eth", no+1), CurrSpeed: 1e6})
				}
				return &openflow.MultipartReply{Body: &openflow.PortDescReply{Ports: all}}
			}
		}
		return nil
	})
	return session.Open(ctx, ours, session.Options{EchoInterval: time.Hour})
}

// large returns the loop of the largest network that is tested: 1,000 switches with names, 3,000 cables and 10,000 hosts. Nothing
// happens in it.
func large(b *testing.B) *Network {
	b.Helper()
	const switches, cables, hosts = 1000, 3000, 10
	ctx, cancel := context.WithCancel(b.Context())
	n := New(ctx, Options{Key: []byte("key")})
	b.Cleanup(cancel)
	n.mu.Lock()
	n.ticker.Stop()
	n.planning = time.AfterFunc(time.Hour, func() {})
	n.mu.Unlock()
	ends := make([][]fabric.PortID, switches) // the ports of links follow those of hosts
	wired := randomCables(switches, cables)
	for _, c := range wired {
		for _, s := range c {
			ends[s] = append(ends[s], fabric.PortID{Switch: fabric.DPID(s + 1), Port: fabric.PortNo(hosts + 1 + len(ends[s]))})
		}
	}
	now := time.Now()
	config := fabric.Config{Name: "large", HostsPerPort: 64}
	for s := range switches {
		id := fabric.DPID(s + 1)
		config.Switches = append(config.Switches, fabric.SwitchConfig{ID: id, Name: fmt.Sprint("s", s+1)})
		conn, err := openSwitch(ctx, id, hosts+len(ends[s]))
		if err != nil {
			b.Fatal(err)
		}
		n.attach(&attached{id: id, conn: conn, wake: make(chan struct{}, 1), capabilities: fabric.Capabilities{Tables: 254}}, &program.State{})
	}
	n.Configure(config)
	n.mu.Lock()
	defer n.mu.Unlock()
	used := make([]int, switches)
	for _, c := range wired {
		var cable [2]fabric.PortID
		for i, s := range c {
			cable[i] = ends[s][used[s]]
			used[s]++
		}
		for i := range cable {
			n.ports[cable[i]].heard = true
			n.links.Observe(cable[i], cable[1-i], now)
		}
	}
	for id, p := range n.ports {
		p.ready = !p.heard
		t := &traffic{}
		for i := range 2 {
			t.Take(fabric.PortCounters{At: now.Add(time.Duration(i-1) * time.Second), Tx: fabric.Counts{Bytes: uint64(i)}})
		}
		n.traffic[id] = t
		if !p.heard {
			mac := fabric.MAC{2, 0, byte(id.Switch >> 8), byte(id.Switch), 0, byte(id.Port)}
			n.hosts.Observe(fabric.Sighting{HostID: fabric.HostID{MAC: mac}, At: id, By: fabric.FromARP, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(id.Switch >> 8), byte(id.Switch), byte(id.Port)})}}, now)
		}
	}
	t, err := fabric.New(n.parts())
	if err != nil {
		b.Fatal(err)
	}
	if len(t.Switches()) != switches || len(t.Links()) != 2*cables || len(t.Hosts()) != switches*hosts {
		b.Fatalf("%d switches, %d links and %d hosts", len(t.Switches()), len(t.Links()), len(t.Hosts()))
	}
	n.plan = &program.Connectivity{Topology: t}
	return n
}

// BenchmarkStatus is what a scrape of the metrics and a poll of the page take of a large network: all of it, and the part in which
// the loop is locked.
func BenchmarkStatus(b *testing.B) {
	n := large(b)
	for _, of := range []struct {
		name string
		run  func()
	}{{"all", func() { n.Status() }}, {"locked", func() { n.snapshot() }}} {
		b.Run(of.name, func(b *testing.B) {
			began := processorTime(b)
			for b.Loop() {
				of.run()
			}
			b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime returns that of this process, which does not depend on what else the machine does.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkKeep loses the channel of a switch of a large network.
func BenchmarkKeep(b *testing.B) {
	n := large(b)
	n.mu.Lock()
	defer n.mu.Unlock()
	for b.Loop() {
		n.keep(1)
	}
}

// BenchmarkFloodLarge sends a frame to all ports of hosts of a large network.
func BenchmarkFloodLarge(b *testing.B) {
	n := large(b)
	n.mu.Lock()
	defer n.mu.Unlock()
	at := fabric.PortID{Switch: 1, Port: 1}
	for b.Loop() {
		delete(n.unknown, at) // the bounds are full again
		n.copies = bucket{}
		n.flood(at, frame{data: make([]byte, 60)})
	}
	if n.counters.DroppedFloods > 0 {
		b.Fatal("frames were dropped")
	}
}
