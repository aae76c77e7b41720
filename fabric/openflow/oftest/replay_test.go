package oftest

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// different has the steps at which Switch differs from the recorded Open vSwitch, and why.
var different = map[string]string{
	"instructions: goto a table that does not exist": "table 254 exists within Open vSwitch",
	"instructions: goto all tables":                  "Open vSwitch accepts it",
	"loops: chained to itself":                       "Open vSwitch finds loops only when packets are in them; section 6.5 refuses them",
	"loops: a loop of two groups":                    "as before",
	"groups: features":                               "actions of MPLS are not supported",
}

// TestReplay: Switch answers as the real Open vSwitch that was recorded.
func TestReplay(t *testing.T) {
	if *record != "" {
		recordScripts(t, *record)
	}
	for _, want := range scripts() {
		t.Run(want.name, func(t *testing.T) {
			got, err := readScript(want.name, filepath.Join("testdata", want.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.steps) != len(want.steps) {
				t.Fatalf("the recording has %d steps, the script %d: record again (testdata/record.sh)", len(got.steps), len(want.steps))
			}
			synctest.Test(t, func(t *testing.T) { replay(t, want, got) })
		})
	}
}

func replay(t *testing.T, want, recorded *script) {
	s := New(Options{DatapathID: 0xa1, EchoInterval: -1})
	for n := range openflow.PortNo(4) {
		if err := s.AddPort(PortOptions{No: n + 1, HWAddr: dummyMAC(byte(n + 1))}); err != nil {
			t.Fatal(err)
		}
	}
	s.ports[openflow.PortLocal].mac = openflow.MAC{0xaa, 0x55, 0xaa, 0x55, 0, 0xff}
	var peers [2]*peer
	for i := range peers {
		ours, theirs := net.Pipe()
		s.Connect(ours)
		peers[i] = newPeer(theirs)
		defer theirs.Close()
	}
	synctest.Wait()
	var n [2]normalizer
	for i, st := range recorded.steps {
		ref := want.steps[i]
		if st.comment != ref.comment || !bytes.Equal(st.send, ref.send) || !bytes.Equal(st.frame, ref.frame) {
			t.Fatalf("step %q is not as it was recorded: record again (testdata/record.sh)", ref.comment)
		}
		switch {
		case st.to > 0:
			if _, err := peers[st.to-1].conn.Write(st.send); err != nil {
				t.Fatal(err)
			}
		case st.frame != nil:
			s.Receive(openflow.PortNo(st.port), st.frame)
		default:
			time.Sleep(st.wait)
		}
		for k, p := range peers {
			got, err := p.drain()
			if err != nil {
				t.Fatalf("%s: %v", st.comment, err)
			}
			a, b := n[0].all(st.got[k]), n[1].all(got)
			name := recorded.name + ": " + st.comment
			_, known := different[name]
			switch same := slices.Equal(a, b); {
			case !same && !known:
				t.Errorf("%s, controller %d:\n  OVS:  %s\n  here: %s", name, k+1, a, b)
			case same && known && k == 0:
				t.Errorf("%s: it is as recorded, but listed as different", name)
			}
		}
	}
}

// normalizer makes the answers of two switches comparable: without times, the order of lists, and counters from before
// the script.
type normalizer struct {
	ports  map[openflow.PortNo]openflow.PortStats
	tables map[openflow.TableID]openflow.TableStats
}

func (n *normalizer) all(messages [][]byte) []string {
	var all []string
	for _, b := range messages {
		all = append(all, n.one(b))
	}
	slices.Sort(all) // packet-ins may overtake
	return all
}

func (n *normalizer) one(b []byte) string {
	xid, m, err := openflow.Decode(b)
	if err != nil {
		return fmt.Sprintf("%x: %v", b, err)
	}
	switch m := m.(type) {
	case *openflow.Error:
		return fmt.Sprintf("%d %s %x", xid, m.Name(), m.Data)
	case *openflow.FlowRemoved:
		m.Duration = openflow.Duration{}
	case *openflow.PacketIn:
		return fmt.Sprintf("%d %v %x", xid, m, m.Data)
	case *openflow.MultipartReply:
		n.body(m.Body)
	case *openflow.QueueGetConfigReply:
		for i := range m.Queues {
			m.Queues[i].Port, m.Queues[i].Properties = 0, nil
		}
	}
	return fmt.Sprint(xid, " ", m)
}

func (n *normalizer) body(b openflow.ReplyBody) {
	switch b := b.(type) {
	case *openflow.FlowStatsReply:
		b.Flows = slices.DeleteFunc(b.Flows, func(f openflow.FlowStats) bool { return f.Table == openflow.TableMax })
		for i := range b.Flows {
			f := &b.Flows[i]
			f.Duration = openflow.Duration{}
			f.Match = slices.DeleteFunc(f.Match, func(f openflow.Field) bool { return f.ID() == packetType }).Canonical()
		}
		slices.SortFunc(b.Flows, func(a, b openflow.FlowStats) int {
			return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Priority, b.Priority), cmp.Compare(fmt.Sprint(a.Match), fmt.Sprint(b.Match)))
		})
	case *openflow.PortDescReply:
		slices.SortFunc(b.Ports, func(a, b openflow.Port) int { return cmp.Compare(a.No, b.No) })
	case *openflow.QueueStatsReply:
		slices.SortFunc(b.Queues, func(a, b openflow.QueueStats) int { return cmp.Compare(a.Port, b.Port) })
	case *openflow.GroupDescReply:
		slices.SortFunc(b.Groups, func(a, b openflow.GroupDesc) int { return cmp.Compare(a.Group, b.Group) })
	case *openflow.GroupStatsReply:
		for i := range b.Groups {
			b.Groups[i].Duration = openflow.Duration{}
		}
		slices.SortFunc(b.Groups, func(a, b openflow.GroupStats) int { return cmp.Compare(a.Group, b.Group) })
	case *openflow.MeterConfigReply:
		slices.SortFunc(b.Meters, func(a, b openflow.MeterConfig) int { return cmp.Compare(a.Meter, b.Meter) })
	case *openflow.MeterStatsReply:
		for i := range b.Meters {
			b.Meters[i].Duration = openflow.Duration{}
		}
		slices.SortFunc(b.Meters, func(a, b openflow.MeterCounters) int { return cmp.Compare(a.Meter, b.Meter) })
	case *openflow.PortStatsReply:
		n.sincePorts(b.Ports)
	case *openflow.TableStatsReply:
		n.sinceTables(b)
	}
}

// packetType is a field of OpenFlow 1.5, which Open vSwitch sends if a match has a mask of zeros.
const packetType openflow.FieldID = openflow.ClassBasic<<7 + 44

// sincePorts subtracts the counters of the first reply.
func (n *normalizer) sincePorts(all []openflow.PortStats) {
	first := n.ports == nil
	if first {
		n.ports = map[openflow.PortNo]openflow.PortStats{}
	}
	for i := range all {
		p := &all[i]
		p.Duration = openflow.Duration{}
		if first {
			n.ports[p.Port] = *p
		}
		b := n.ports[p.Port]
		p.RxPackets, p.RxBytes, p.TxPackets, p.TxBytes = p.RxPackets-b.RxPackets, p.RxBytes-b.RxBytes, p.TxPackets-b.TxPackets, p.TxBytes-b.TxBytes
	}
	slices.SortFunc(all, func(a, b openflow.PortStats) int { return cmp.Compare(a.Port, b.Port) })
}

// sinceTables subtracts the counters of the first reply, and leaves out tables that are empty and unused.
func (n *normalizer) sinceTables(r *openflow.TableStatsReply) {
	first := n.tables == nil
	if first {
		n.tables = map[openflow.TableID]openflow.TableStats{}
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		if first {
			n.tables[t.Table] = *t
		}
		b := n.tables[t.Table]
		t.Lookups, t.Matched = t.Lookups-b.Lookups, t.Matched-b.Matched
	}
	r.Tables = slices.DeleteFunc(r.Tables, func(t openflow.TableStats) bool { return t.Active == 0 && t.Lookups == 0 })
}
