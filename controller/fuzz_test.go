package controller

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"headgate.dev/headgate/api/agents"
)

// FuzzAgentMessages: no message of an agent in wrong hands ends the controller.
func FuzzAgentMessages(f *testing.F) {
	for _, m := range []proto.Message{
		&agents.Report{AtNs: 5, Devices: []*agents.DeviceReport{{Dev: "eth0", Names: []string{"out/a", "out/a/b", "in/c"}, GuaranteeBps: []uint64{1}, Bytes: []uint64{1, 2}, QueuedNs: []uint64{1},
			Directions: []*agents.DirectionReport{{Name: "out", LimitBps: 1}}}}},
		&agents.Facts{Devices: []*agents.Device{{Name: "eth0", Altnames: []string{"en0"}, Mac: "02:00:00:00:00:01", Addresses: []string{"192.0.2.1/24"}}}},
		&agents.Enforced{Fence: &agents.Fence{Epoch: 1, Revision: 2}, Errors: map[string]string{"eth0": "no"}},
	} {
		text, err := proto.Marshal(agents.From(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		l := &link{host: "h1", hello: &agents.Hello{}, tables: map[string]*table{}, queries: map[uint64]openQuery{}, out: make(chan *agents.ToAgent, 16)}
		v := view{&hub{cache: &cache{contents: newContents()}, links: map[string]*link{"h1": l}}}
		for _, text := range [][]byte{first, second} {
			m := &agents.FromAgent{}
			if proto.Unmarshal(text, m) != nil {
				return
			}
			switch carried := agents.Carried(m).(type) {
			case *agents.Report:
				l.report(carried)
			case *agents.Facts:
				l.facts = carried
			case *agents.Enforced:
				l.enforced = carried
			default:
				l.deliver(m)
			}
		}
		v.State("h1")
		v.Rates("h1")
		v.Loads("h1", nil)
	})
}
