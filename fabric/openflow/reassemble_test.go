package openflow

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The parts of replies, mixed with those of others, give the replies that were divided.
func TestReassembler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gen{T: t}
		type sent struct {
			want  []Port
			parts []*MultipartReply
		}
		replies := map[uint32]*sent{}
		for xid := range uint32(rapid.IntRange(1, 4).Draw(t, "replies")) {
			s := &sent{}
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				ports := few(g, 3, "ports", g.portDesc)
				s.want = append(s.want, ports...)
				s.parts = append(s.parts, &MultipartReply{More: true, Body: &PortDescReply{ports}})
			}
			s.parts[len(s.parts)-1].More = false
			replies[xid] = s
		}
		var r Reassembler
		for len(replies) > 0 {
			var left []uint32
			for xid := range uint32(4) {
				if replies[xid] != nil {
					left = append(left, xid)
				}
			}
			xid := rapid.SampledFrom(left).Draw(t, "next")
			s := replies[xid]
			b, err := Append(nil, xid, s.parts[0])
			if err != nil {
				t.Fatal(err)
			}
			_, m, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			s.parts = s.parts[1:]
			got, err := r.Add(xid, m.(*MultipartReply), len(b))
			if err != nil || (got != nil) != (len(s.parts) == 0) {
				t.Fatalf("with %d parts to come: %v, %v", len(s.parts), got, err)
			}
			if got != nil {
				if want := (&MultipartReply{Body: &PortDescReply{s.want}}); !reflect.DeepEqual(got, want) {
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

// Replies of each kind with a list can be in parts.
func TestReassemblerKinds(t *testing.T) {
	for kind, m := range multiparts {
		if _, _, err := Decode([]byte{4, 19, 0, 16, 0, 0, 0, 0, 0, byte(kind), 0, 1, 0, 0, 0, 0}); err != nil {
			continue // a single structure, which cannot be empty
		}
		var r Reassembler
		for i := range 3 {
			got, err := r.Add(1, &MultipartReply{More: i < 2, Body: m.reply()}, 16)
			if err != nil || (got != nil) != (i == 2) {
				t.Errorf("%s %d: %v, %v", m.name, i, got, err)
			}
		}
	}
}

func TestReassemblerErrors(t *testing.T) {
	ports, flows := &PortDescReply{}, &FlowStatsReply{}
	for _, c := range []struct {
		first, second ReplyBody
		want          string
	}{
		{ports, flows, "cannot reassemble port-desc reply 0x5: a part is of kind flow"},
		{&Desc{}, &Desc{}, "cannot reassemble desc reply 0x5: it is a single structure, but has several parts"},
		{&ExperimenterMultipart{1, 2, nil}, &ExperimenterMultipart{1, 3, nil}, "cannot reassemble experimenter reply 0x5: a part is of experimenter 0x1, type 3"},
	} {
		var r Reassembler
		if _, err := r.Add(5, &MultipartReply{More: true, Body: c.first}, 16); err != nil {
			t.Error(err)
		}
		if _, err := r.Add(5, &MultipartReply{Body: c.second}, 16); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if n, bytes := r.Pending(); n != 0 || bytes != 0 {
			t.Errorf("%d replies of %d bytes wait", n, bytes)
		}
	}
}

// Parts beyond the limit are refused, those of other replies are kept, and a reply in one part is never refused.
func TestReassemblerLimit(t *testing.T) {
	r := Reassembler{Limit: 2000}
	more := func() *MultipartReply { return &MultipartReply{More: true, Body: &PortDescReply{}} }
	if _, err := r.Add(1, more(), 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(2, more(), 1000); err == nil || !strings.Contains(err.Error(), "exceed 2000 bytes") {
		t.Errorf("error %v", err)
	}
	if n, bytes := r.Pending(); n != 1 || bytes != 1000+partOverhead {
		t.Errorf("%d replies of %d bytes wait", n, bytes)
	}
	if got, err := r.Add(2, &MultipartReply{Body: &PortDescReply{}}, 60000); got == nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := r.Add(1, more(), 1000); err == nil {
		t.Error("the second part is not refused")
	}
	r.Add(3, more(), 16)
	r.Forget(3)
	r.Forget(3)
	if n, bytes := r.Pending(); n != 0 || bytes != 0 {
		t.Errorf("%d replies of %d bytes wait", n, bytes)
	}
}
