package live

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// A port that an operator wrote, by number or by name, and that its switch does not have, is a fault until the switch has it, or is
// gone. It has one event, however often other ports change.
func TestMissingPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		config := fabric.Config{
			Name: "campus", HostsPerPort: 10, AcceptUnknown: true,
			Switches: []fabric.SwitchConfig{{ID: 1, Name: "north", HostPorts: []fabric.PortName{{No: 1}, {No: 77}}, LinkPorts: []fabric.PortName{{Name: "up"}}}},
			Trust:    []fabric.PortRef{{Switch: 1, Port: fabric.PortName{No: 77}}},
		}
		w.live.Configure(config) // before the switch connects
		faults := func(want ...string) {
			t.Helper()
			w.settle(time.Second)
			all := w.live.Status().Faults
			ok := len(all) == len(want)
			for n := range min(len(all), len(want)) {
				ok = ok && all[n].Kind == fabric.MissingPort && all[n].Port.Switch == 1 && strings.HasPrefix(all[n].Text, want[n])
			}
			if !ok {
				t.Errorf("the faults are %+v, want %q", all, want)
			}
		}
		faults("port north/up does not exist: the switch has 1", "port north/77 does not exist: the switch has 1")
		add := func(no int, name string) {
			if err := w.sw[0].AddPort(oftest.PortOptions{No: openflow.PortNo(no), Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		add(40, "other")
		faults("port north/up", "port north/77")
		add(41, "up")
		faults("port north/77")
		add(77, "")
		faults()
		w.live.Configure(config)
		config.Trust[0].Port.No = 78
		w.live.Configure(config)
		faults("port north/78")
		w.sw[0].PowerOff()
		time.Sleep(5 * time.Second)
		if all := w.live.Status().Faults; len(all) > 0 {
			t.Errorf("the faults of a switch that is gone are %+v", all)
		}
		var events []string
		for _, e := range w.events {
			if e.Kind == fabric.SwitchChanged && e.Switch == 1 {
				events = append(events, strings.SplitN(e.Text, ":", 2)[0])
			}
		}
		if want := []string{"port north/77 does not exist", "port north/up does not exist", "switch 0000000000000001 has all ports that the configuration names", "port north/78 does not exist"}; !slices.Equal(events, want) {
			t.Errorf("the events are %q, want %q", events, want)
		}
	})
}
