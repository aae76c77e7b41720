package remote

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"headgate.dev/headgate/api/agents"
)

// A controller of another version is accepted although it sends unknown fields and messages and no
// heartbeats. After a first heartbeat, the agent disconnects when heartbeats stop.
func TestControllerOfAnotherVersion(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	a := start(t, dir, nil)
	within(t, "the agent connects", 10*time.Second, c.hello)
	strange := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
	d := desired(1, 5, eth0(5, `{"dev": "eth0", "none": 1, "out": {"limit": "10Mbit", "groups": [{"name": "rest", "default": true}]}}`))
	d.GetDesired().ProtoReflect().SetUnknown(strange)
	c.say <- d
	within(t, "the desired state changes", 5*time.Second, a.changed)
	if all, errs := a.DesiredState.Interfaces(); len(all) != 1 || len(errs) > 0 {
		t.Errorf("interfaces are %+v, %v", all, errs)
	}
	select {
	case <-c.ended:
		t.Error("the agent disconnects from a controller without heartbeats")
	case <-time.After(heartbeatTimeout + time.Second):
	}
	m := &agents.ToAgent{}
	m.ProtoReflect().SetUnknown(strange)
	c.say <- m
	within(t, "the agent disconnects when heartbeats stop", heartbeatTimeout+3*time.Second, c.ended)
	h := within(t, "the agent reconnects", 5*time.Second, c.hello)
	if h.Fence.Revision != 5 || h.Interfaces["eth0"] != 5 {
		t.Errorf("hello after the reconnect is %v", h)
	}
}
