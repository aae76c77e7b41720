package remote

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"headgate/api/agents"
)

// A controller of another version is obeyed as far as it is understood: one that says fields and
// messages which this one does not know, and never that it is there. One that has said so once is
// left when it says so no more.
func TestControllerOfAnotherVersion(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	a := start(t, dir, nil)
	within(t, "it comes", 10*time.Second, c.hello)
	strange := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
	d := desired(1, 5, eth0(5, `{"dev": "eth0", "none": 1, "out": {"limit": "10Mbit", "groups": [{"name": "rest", "default": true}]}}`))
	d.GetDesired().ProtoReflect().SetUnknown(strange)
	c.say <- d
	within(t, "it obeys", 5*time.Second, a.changed)
	if all, troubles := a.Intent.Interfaces(); len(all) != 1 || len(troubles) > 0 {
		t.Errorf("it has %+v, %v", all, troubles)
	}
	select {
	case <-c.ended:
		t.Error("it leaves a controller that does not say that it is there")
	case <-time.After(silence + time.Second):
	}
	m := &agents.ToAgent{}
	m.ProtoReflect().SetUnknown(strange)
	c.say <- m
	within(t, "it leaves one that has fallen silent", silence+3*time.Second, c.ended)
	h := within(t, "it comes again", 5*time.Second, c.hello)
	if h.Fence.Revision != 5 || h.Interfaces["eth0"] != 5 {
		t.Errorf("it comes again with %v", h)
	}
}
