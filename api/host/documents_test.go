package host

import (
	"testing"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
)

// A document is in force when the host has its new revision, and waiting ends when it cannot help.
func TestNotEnforced(t *testing.T) {
	var set config.Set
	for _, dev := range []string{"eth0", "eth1"} {
		one := config.Interface{}
		one.Interface = group.Interface{Dev: dev}
		set.Interfaces = append(set.Interfaces, one)
	}
	of := func(name string, revision int64, state api.DocumentStateState) api.DocumentState {
		return api.DocumentState{Kind: api.DocumentOfInterface, Name: name, Revision: revision, State: state}
	}
	before := []api.DocumentState{of("eth0", 5, api.DocumentEnforced)}
	for name, c := range map[string]struct {
		now   []api.DocumentState
		left  int
		final bool
	}{
		"all in force":           {[]api.DocumentState{of("eth0", 6, api.DocumentEnforced), of("eth1", 7, api.DocumentEnforced), of("eth2", 1, api.DocumentRefused)}, 0, false},
		"an earlier revision":    {[]api.DocumentState{of("eth0", 5, api.DocumentEnforced)}, 1, false},
		"one is refused":         {[]api.DocumentState{of("eth0", 6, api.DocumentEnforced), of("eth1", 7, api.DocumentRefused)}, 1, true},
		"one may still come":     {[]api.DocumentState{of("eth0", 6, api.DocumentApplying), of("eth1", 7, api.DocumentRefused)}, 2, false},
		"the device may come":    {[]api.DocumentState{of("eth0", 6, api.DocumentWaiting)}, 1, false},
		"a file on the host has": {[]api.DocumentState{of("eth0", 6, api.DocumentOverridden)}, 1, true},
	} {
		if left, final := notEnforced(set, before, c.now); len(left) != c.left || final != c.final {
			t.Errorf("%s: %v, %v", name, left, final)
		}
	}
}
