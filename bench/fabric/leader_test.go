package fabric

import (
	"testing"
	"time"

	"headgate.dev/headgate/bench/inmemory"
)

func TestFlowsFall(t *testing.T) {
	before := parseFlows(` cookie=0x4847010000000000, duration=7.5s, table=0, n_packets=10, n_bytes=600, priority=3000,dl_type=0x88cc actions=CONTROLLER:65535
 cookie=0x4847020000000001, duration=7s, table=0, n_packets=4, n_bytes=0, reset_counts priority=2000,in_port=1,vlan_tci=0x1000/0x1000 actions=goto_table:5
 cookie=0x4847030000000000, duration=7s, table=5, n_packets=1, n_bytes=0, actions=drop
`)
	if len(before) != 3 {
		t.Fatalf("%v", before)
	}
	after := parseFlows(` cookie=0x4847010000000000, duration=1s, table=0, n_packets=12, n_bytes=600, priority=3000,dl_type=0x88cc actions=CONTROLLER:65535
 cookie=0x4847020000000001, duration=17s, table=0, n_packets=3, n_bytes=0, reset_counts priority=2000,in_port=1,vlan_tci=0x1000/0x1000 actions=goto_table:5
`)
	if got := fell(before, after); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := younger(before, after, 10*time.Second); got != 1 {
		t.Errorf("%d flows were written again, want 1", got)
	}
	if got := fell(before, before); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestMasters(t *testing.T) {
	r := inmemory.Report{Masters: map[string]inmemory.Master{"1": {Controller: "a", Since: 5, Generation: 1}, "2": {Controller: "a", Since: 9, Generation: 1}}}
	if at, ok := masterOf(r, 2); at != "a" || !ok {
		t.Error(at, ok)
	}
	if _, ok := masterOf(r, 3); ok {
		t.Error("a switch without a master is not seen")
	}
	if _, ok := since(r, 2, "a"); ok {
		t.Error("the old master counts as a new one")
	}
	if at, ok := since(r, 2, "b"); !ok || at != 9 {
		t.Error(at, ok)
	}
	r.Masters["2"] = inmemory.Master{Controller: "b", Since: 9, Generation: 2}
	if _, ok := masterOf(r, 2); ok {
		t.Error("two masters are taken for one")
	}
	if _, ok := since(r, 2, "a"); ok {
		t.Error("a switch that keeps the old master is not seen")
	}
	if got := countWord("master\n\"slave\"\n\"master\"\n", "master"); got != 2 {
		t.Error(got)
	}
}
