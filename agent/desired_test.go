package agent

import (
	"slices"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/shaper"
)

// Connections are requested for the device as the document names it, also for an alternative name
// or a pattern.
func TestConnectionsAsNamed(t *testing.T) {
	const groups = "out: {limit: 10Mbit, groups: [{name: rest, default: true}]}\n"
	set, err := config.Parse("f", []byte("kind: Interface\ndev: enp0s3\n"+groups+"---\nkind: Interface\ndev: veth*\n"+groups+"---\nkind: Interface\ndev: eth1\n"+groups))
	if err != nil {
		t.Fatal(err)
	}
	if set, err = set.WithAltNames(map[string][]string{"eth0": {"enp0s3"}}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	desiredStates(set, []Device{{Index: 1, Name: "eth0", AltNames: []string{"enp0s3"}}, {Index: 2, Name: "veth7"}, {Index: 3, Name: "eth1"}}, nil, func(dev string) []shaper.Assignment {
		asked = append(asked, dev)
		return nil
	})
	if want := []string{"enp0s3", "veth*", "eth1"}; !slices.Equal(asked, want) {
		t.Errorf("requested the connections of %q, want %q", asked, want)
	}
}
