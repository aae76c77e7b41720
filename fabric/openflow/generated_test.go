package openflow_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

// matchOf returns the match of a drawn flow-mod.
func matchOf(t *rapid.T) openflow.Match {
	k := judge.Kinds[slices.IndexFunc(judge.Kinds, func(k judge.Kind) bool { return k.Name == "flow-mod" })]
	return k.Draw(judge.Gen{Source: drawn{t}}).(*openflow.FlowMod).Match
}

// What is generated passes the check.
func TestGeneratedMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := matchOf(t).Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// Canonical matches of the same fields are equal, whatever their order, and need no later fields.
func TestGeneratedCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := matchOf(t)
		shuffled := openflow.Match(rapid.Permutation(m).Draw(t, "order"))
		got := m.Canonical()
		if !slices.Equal(got, shuffled.Canonical()) || !slices.Equal(got, got.Canonical()) {
			t.Fatalf("%v and %v", got, shuffled.Canonical())
		}
		for i := range got {
			if err := got[:i+1].Check(); err != nil {
				t.Fatalf("%v: %v", got, err)
			}
		}
	})
}

// The parts of replies, mixed with those of others, give the replies that were divided.
func TestReassembler(t *testing.T) {
	portDesc := judge.Kinds[slices.IndexFunc(judge.Kinds, func(k judge.Kind) bool { return k.Name == "port-desc reply" })]
	rapid.Check(t, func(t *rapid.T) {
		g := judge.Gen{Source: drawn{t}}
		type sent struct {
			want  []openflow.Port
			parts []*openflow.MultipartReply
		}
		replies := map[uint32]*sent{}
		for xid := range uint32(rapid.IntRange(1, 4).Draw(t, "replies")) {
			s := &sent{}
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				ports := portDesc.Draw(g).(*openflow.MultipartReply).Body.(*openflow.PortDescReply).Ports
				s.want = append(s.want, ports...)
				s.parts = append(s.parts, &openflow.MultipartReply{More: true, Body: &openflow.PortDescReply{Ports: ports}})
			}
			s.parts[len(s.parts)-1].More = false
			replies[xid] = s
		}
		var r openflow.Reassembler
		for len(replies) > 0 {
			var left []uint32
			for xid := range uint32(4) {
				if replies[xid] != nil {
					left = append(left, xid)
				}
			}
			xid := rapid.SampledFrom(left).Draw(t, "next")
			s := replies[xid]
			b, err := openflow.Append(nil, xid, s.parts[0])
			if err != nil {
				t.Fatal(err)
			}
			_, m, err := openflow.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			s.parts = s.parts[1:]
			got, err := r.Add(xid, m.(*openflow.MultipartReply), len(b))
			if err != nil || (got != nil) != (len(s.parts) == 0) {
				t.Fatalf("with %d parts to come: %v, %v", len(s.parts), got, err)
			}
			if got != nil {
				if want := (&openflow.MultipartReply{Body: &openflow.PortDescReply{Ports: s.want}}); !reflect.DeepEqual(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
				delete(replies, xid)
			}
		}
		if n, bytes := r.Pending(); n != 0 || bytes != 0 {
			t.Fatalf("%d replies of %d bytes wait", n, bytes)
		}
	})
}
