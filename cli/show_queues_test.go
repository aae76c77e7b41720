package cli

import (
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

func TestShowQueueType(t *testing.T) {
	for queues, want := range map[string]string{"fq_codel": "connections, queues fq_codel;", "fifo": "connections, queues fifo;", "": "connections;"} {
		var out strings.Builder
		st := shaper.State{Dev: "eth0", Plan: shaper.Plan{Out: &group.Tree{}}, Out: &shaper.DirectionState{Queues: queues}}
		if err := groupsTable(&out, []shaper.State{st}, nil); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v in\n%s", queues, err, out.String())
		}
	}
}
