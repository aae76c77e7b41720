package openflow

import (
	"strings"
	"testing"
)

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
