package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate.dev/headgate/shaper"
)

// Each group of each direction is exported up to the maximum, and the number of the other groups.
func TestGroups(t *testing.T) {
	state := shaper.State{Dev: "eth0", Out: &shaper.DirectionState{}, In: &shaper.DirectionState{Groups: []shaper.GroupState{{Path: "web", Guarantee: 1_000_000, Bytes: 1500, Packets: 1, Drops: 2, Marks: 3, BacklogBytes: 4}}}}
	c := NewGroups(func() []shaper.State { return []shaper.State{state} }, func(dev, group string) float64 { return map[string]float64{"eth0 in/web": 7}[dev+" "+group] })
	err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP headgate_group_delivered_bytes_total Bytes delivered by the group, in layer 2.
# TYPE headgate_group_delivered_bytes_total counter
headgate_group_delivered_bytes_total{dev="eth0",direction="in",group="web"} 1500
# HELP headgate_groups_not_exported Number of groups that are not exported, beyond the first 2000.
# TYPE headgate_groups_not_exported gauge
headgate_groups_not_exported 0
# HELP headgate_group_unmet_seconds_total Time in which the group had a backlog and was served more slowly than its guarantee.
# TYPE headgate_group_unmet_seconds_total counter
headgate_group_unmet_seconds_total{dev="eth0",direction="in",group="web"} 7
`), "headgate_group_delivered_bytes_total", "headgate_groups_not_exported", "headgate_group_unmet_seconds_total")
	if err != nil {
		t.Error(err)
	}
	for i := range maxGroups + 4 {
		state.Out.Groups = append(state.Out.Groups, shaper.GroupState{Path: fmt.Sprint(i)})
	}
	if n := testutil.CollectAndCount(c, "headgate_group_marked_packets_total"); n != maxGroups {
		t.Errorf("%d groups are exported, want %d", n, maxGroups)
	}
	err = testutil.CollectAndCompare(c, strings.NewReader(`
# HELP headgate_groups_not_exported Number of groups that are not exported, beyond the first 2000.
# TYPE headgate_groups_not_exported gauge
headgate_groups_not_exported 5
`), "headgate_groups_not_exported")
	if err != nil {
		t.Error(err)
	}
}
