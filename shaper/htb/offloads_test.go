package htb

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
)

// TestOffloads: the reported settings of a device, by the record and the present values.
func TestOffloads(t *testing.T) {
	size := func(all, ipv4 uint32) nl.MaxSize { return nl.MaxSize{Size: all, IPv4: ipv4} }
	setting := func(name string, value, before uint32) shaper.DeviceSetting {
		return shaper.DeviceSetting{Name: name, Value: value, Before: before, ChangedByOther: before == 0}
	}
	for _, c := range []struct {
		name        string
		record      *classifier.GSOChange
		now         nl.MaxSize
		desiredSide []shaper.DeviceSetting
	}{
		{"nothing was changed", nil, size(65536, 65536), nil},
		{"one setting reported", &classifier.GSOChange{Before: size(65536, 0), Set: size(3280, 0)}, size(3280, 0),
			[]shaper.DeviceSetting{setting("gso_max_size", 3280, 65536)}},
		{"both", &classifier.GSOChange{Before: size(524280, 65536), Set: size(3280, 3280)}, size(3280, 3280),
			[]shaper.DeviceSetting{setting("gso_max_size", 3280, 524280), setting("gso_ipv4_max_size", 3280, 65536)}},
		{"IPv4 was less before", &classifier.GSOChange{Before: size(65536, 1500), Set: size(3280, 1500)}, size(3280, 1500),
			[]shaper.DeviceSetting{setting("gso_max_size", 3280, 65536)}},
		{"changed since", &classifier.GSOChange{Before: size(65536, 65536), Set: size(3280, 3280)}, size(3280, 65536),
			[]shaper.DeviceSetting{setting("gso_max_size", 3280, 0), setting("gso_ipv4_max_size", 65536, 0)}},
		{"left unchanged", &classifier.GSOChange{Before: size(20000, 0), Set: size(20000, 0), Left: true}, size(20000, 0),
			[]shaper.DeviceSetting{setting("gso_max_size", 20000, 0)}},
	} {
		k := &kernel{Device: &attach.Device{Link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{GSOMaxSize: c.now.Size, GSOIPv4MaxSize: c.now.IPv4}}}}
		for i := range k.sides {
			k.sides[i].Side = &k.Sides[i]
		}
		k.sides[egress].Record = &classifier.Record{Sized: c.record}
		if got := k.offloads(egress); !slices.Equal(got, c.desiredSide) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.desiredSide)
		}
	}
}
