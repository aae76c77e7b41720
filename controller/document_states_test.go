package controller

import (
	"testing"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
)

// Each document has the state that its agent's reports show.
func TestDocumentStates(t *testing.T) {
	facts := &agents.Facts{Devices: []*agents.Device{
		{Name: "eth0", Owner: "controller", Altnames: []string{"enp0s3"}}, {Name: "eth1", Owner: "local"}, {Name: "veth7", Owner: "controller"}, {Name: "eth2", Owner: "none"},
	}}
	enforced := &agents.Enforced{Fence: &agents.Fence{Epoch: 1, Revision: 10}, Errors: map[string]string{"eth2": "no"}, SetErrors: map[string]string{"db": "bad"}}
	of := func(name string, revision int64) stored { return stored{api.DocumentOfInterface, name, revision} }
	for _, c := range []struct {
		name      string
		document  stored
		connected bool
		epoch     uint64
		want      api.DocumentStateState
		reason    string
	}{
		{"in force", of("eth0", 10), true, 1, api.DocumentEnforced, ""},
		{"by another name", of("enp0s3", 9), true, 1, api.DocumentEnforced, ""},
		{"a pattern", of("veth*", 9), true, 1, api.DocumentEnforced, ""},
		{"not yet", of("eth0", 11), true, 1, api.DocumentApplying, ""},
		{"after a restore", of("eth0", 5), true, 2, api.DocumentApplying, ""},
		{"no such device", of("eth9", 9), true, 1, api.DocumentWaiting, "the host has no device eth9"},
		{"a pattern without a device", of("br*", 9), true, 1, api.DocumentWaiting, "the host has no device br*"},
		{"a file on the host", of("eth1", 9), true, 1, api.DocumentOverridden, "a file on the host, or another document, configures eth1"},
		{"an error", of("eth2", 9), true, 1, api.DocumentRefused, "no"},
		{"a set", stored{api.DocumentOfCollective, "web", 9}, true, 1, api.DocumentEnforced, ""},
		{"a set with an error", stored{api.DocumentOfCollective, "db", 9}, true, 1, api.DocumentRefused, "bad"},
		{"without an agent", of("eth0", 10), false, 1, api.DocumentDisconnected, ""},
	} {
		got := documentStates([]stored{c.document}, c.epoch, c.connected, facts, enforced)[0]
		reason := ""
		if got.Reason != nil {
			reason = *got.Reason
		}
		if got.State != c.want || reason != c.reason || got.Revision != c.document.revision {
			t.Errorf("%s: %s, %q", c.name, got.State, reason)
		}
	}
	if got := documentStates([]stored{of("eth0", 1)}, 0, true, nil, nil)[0]; got.State != api.DocumentApplying {
		t.Errorf("before the first report: %s", got.State)
	}
}
