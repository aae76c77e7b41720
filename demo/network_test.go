package demo

import (
	"strings"
	"testing"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/golden"
)

// The result of a demo of a network says which promises were broken, and what is left.
func TestNetworkReport(t *testing.T) {
	kept := sites.Least.New("protected", "the program beside the backup", "Mbit/s", 22.5, 22.8)
	broken := sites.Most.New("interrupted", "the program without half of its rate", "s", 1, 1.3)
	var b strings.Builder
	for _, r := range []NetworkResult{
		{Network: sites.New(1), Promises: []sites.Promise{kept}},
		{Network: sites.New(2), Promises: []sites.Promise{kept, broken}, Disturbed: "meanwhile other programs used 27 % of a processor"},
		{Network: sites.New(3), Promises: []sites.Promise{kept}},
	} {
		var left []string
		if r.Network.Seed == 3 {
			left = []string{"network demo-1"}
		}
		r.finish(left, nil)
		if want := r.Network.Seed == 1; r.OK != want {
			t.Errorf("seed %d: ok is %v", r.Network.Seed, r.OK)
		}
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/network.txt", b.String())
}
