package e2e

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// A group that a tenant created has the origin tenant in show, on the host and with --server; the groups of
// the operator have the origin file:
//
//	server (controller, agent) ── router ── client
func TestOrigin(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, node, t.TempDir())
		s.credentials()
		in := "/v1/hosts/h1/interfaces/" + dev
		s.must("PUT", "/v1/tenants/shop", `{}`)
		s.must("PUT", in, `{"out": {"limit": "40Mbit", "groups": [
			{"name": "shop", "guarantee": "30Mbit", "tenant": "shop", "match": [{"dport": ["5002"]}]},
			{"name": "rest", "default": true}]}}`)
		var shop struct{ Token string }
		if err := json.Unmarshal(s.must("POST", "/v1/tokens", `{"name": "shop", "role": "tenant", "tenant": "shop"}`), &shop); err != nil {
			t.Fatal(err)
		}
		s.token = shop.Token
		s.must("PUT", in+"/out/groups/shop%2Fweb", `{"default": true}`)

		want := []string{"shop file", "shop/web tenant", "rest file"}
		for _, args := range [][]string{{"show", "--dev", dev, "-o", "json"}, onH1("show", "--dev", dev, "-o", "json")} {
			var got []string
			var out string
			for range 100 {
				out, _ = s.run(args...)
				var states []shaper.State
				got = nil
				if json.Unmarshal([]byte(out), &states) == nil && len(states) == 1 && states[0].Out != nil {
					for _, g := range states[0].Out.Groups {
						got = append(got, g.Path+" "+g.Origin)
					}
				}
				if slices.Equal(got, want) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: the origins are %v, want %v:\n%s%s", args, got, want, out, s.notes.String())
			}
		}
	})
}
