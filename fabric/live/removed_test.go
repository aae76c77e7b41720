package live

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
)

// What an operator removes from the configuration is named for some minutes: a switch with its links, a link, and former names. A switch
// that fails is not.
func TestRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		all := []fabric.SwitchConfig{{ID: 1, Name: "one"}, {ID: 2, Name: "two"}, {ID: 3, Name: "three"}, {ID: 4}}
		across := fabric.LinkConfig{Ends: [2]fabric.PortRef{{Switch: 1, Port: fabric.PortName{No: 4}}, {Switch: 3, Port: fabric.PortName{No: 4}}}}
		configure := func(c fabric.Config) {
			c.HostsPerPort = 64
			w.live.Configure(c)
		}
		check := func(what string, switches []fabric.DPID, links ...LinkLabel) {
			t.Helper()
			s := w.live.Status()
			var got []fabric.DPID
			for _, one := range s.Removed {
				got = append(got, one.ID)
			}
			var both []LinkLabel
			for _, l := range links {
				both = append(both, l, LinkLabel{l.To, l.From})
			}
			slices.SortFunc(both, compareLabels)
			if !slices.Equal(got, switches) || !slices.Equal(s.RemovedLinks, both) {
				t.Errorf("%s: the switches %v and the links %v are named, want %v and %v", what, got, s.RemovedLinks, switches, both)
			}
		}
		configure(fabric.Config{Switches: all, Links: []fabric.LinkConfig{across}})
		w.settle(time.Second)
		check("at first", nil)
		w.sw[3].PowerOff()
		w.settle(15 * time.Second)
		check("a switch fails", nil)
		w.sw[3].PowerOn()
		w.settle(15 * time.Second)

		configure(fabric.Config{Switches: all})
		w.settle(time.Second)
		check("a link is no longer written", nil, LinkLabel{"one/4", "three/4"})
		w.settle(removedTime)
		check("later", nil)

		all[0].Name = "first"
		configure(fabric.Config{Switches: all})
		check("a switch has another name", nil, LinkLabel{"one/2", "two/2"}, LinkLabel{"one/3", "0000000000000004/3"}, LinkLabel{"one/4", "three/4"})
		w.settle(removedTime)

		configure(fabric.Config{Switches: all[:3]})
		w.settle(time.Second)
		check("a switch may no longer connect", []fabric.DPID{4}, LinkLabel{"first/3", "0000000000000004/3"}, LinkLabel{"three/3", "0000000000000004/2"})
		if !w.has(fabric.SwitchRemoved, "0000000000000004 is disconnected: switch 0000000000000004 is not in the configuration of the network") {
			t.Error("no event says why it is disconnected")
		}
		w.settle(removedTime)
		check("later", nil)

		configure(fabric.Config{Switches: all[:2], AcceptUnknown: true})
		w.settle(15 * time.Second)
		check("a switch is no longer listed, but may connect", []fabric.DPID{3},
			LinkLabel{"two/3", "three/2"}, LinkLabel{"two/3", "0000000000000003/2"}, LinkLabel{"first/4", "three/4"}, LinkLabel{"first/4", "0000000000000003/4"})
	})
}
