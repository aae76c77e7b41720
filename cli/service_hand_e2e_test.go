package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/shaper"
	"headgate/unit"
)

// What somebody applies on the host by hand stays, and the service says so, whose it is meanwhile,
// and what to do, which helps: each of it.
func TestServiceByHand(t *testing.T) {
	t.Parallel() // it waits for most of its time
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node, dir := l.Node("server"), t.TempDir()
		labtest.Run(t, node, "sh", "-ec", "for d in dev0 own0; do ip link add $d type veth peer name x$d; ip link set $d up; done")
		s := serve(t, node, dir)
		limit := func(rate string) func() bool {
			return func() bool {
				t.Helper()
				var states []shaper.State
				text, err := s.command("show", "groups", "-o", "json").Output() // without notes of what waits
				if err == nil {
					err = json.Unmarshal(text, &states)
				}
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				return slices.ContainsFunc(states, func(state shaper.State) bool { return state.Dev == "dev0" && state.Plan.Out.Limit.String() == rate })
			}
		}
		put := func(rate string) {
			t.Helper()
			s.must("PUT", "/v1/hosts/h1/interfaces/dev0", fmt.Sprintf(`{"out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}}`, rate))
		}
		apply := func(dev string, args ...string) {
			t.Helper()
			file := filepath.Join(dir, dev+".yaml")
			if err := os.WriteFile(file, []byte("kind: Interface\ndev: "+dev+"\nout: {limit: 90Mbit, groups: [{name: hand, default: true}]}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s.here(append([]string{"apply", "-f", file}, args...)...)
		}
		trouble := func(what string) func() bool {
			return func() bool {
				d, _ := s.device("dev0")
				if d.Trouble == nil {
					return what == ""
				}
				return what != "" && strings.Contains(*d.Trouble, what)
			}
		}
		left := func(what, remedy string) {
			t.Helper()
			s.eventually("the trouble says "+what, trouble(what))
			s.eventually("the trouble says "+remedy, trouble(remedy))
			s.eventually("it is the host's own", s.owned("dev0", "local"))
			if !limit("90Mbit")() {
				t.Errorf("what was applied by hand does not stay: %s", s.here("show"))
			}
		}
		helped := func(rate string) {
			t.Helper()
			s.eventually("the service's limit is in force", limit(rate))
			s.eventually("there is no trouble", trouble(""))
			s.eventually("it is the controller's", s.owned("dev0", "controller"))
		}
		put("20Mbit")
		helped("20Mbit")
		apply("dev0")
		put("30Mbit")
		left("applied by hand", `"headgate clear --dev dev0"`)
		s.here("clear", "--dev", "dev0")
		helped("30Mbit")
		apply("dev0")
		put("40Mbit")
		left("applied by hand", `"systemctl reload headgate"`) // which is a signal
		s.agent.Process.Signal(syscall.SIGHUP)
		helped("40Mbit")
		apply("dev0", "--confirm-within", "60s")
		put("50Mbit")
		left("waits for its confirmation", `"headgate confirm --roll-back"`)
		s.here("confirm", "--roll-back")
		helped("50Mbit")
		apply("dev0", "--confirm-within", "60s")
		put("60Mbit")
		left("waits for its confirmation", `"headgate confirm"`)
		s.here("confirm")
		left("applied by hand", `"headgate clear --dev dev0"`)

		// Of what nothing is wanted, and what is there, it is looked for every ten seconds.
		eventually := func(owner string) {
			t.Helper()
			for end := time.Now().Add(30 * time.Second); !s.owned("own0", owner)(); time.Sleep(200 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("own0 does not become %s: %s", owner, s.notes.String())
				}
			}
		}
		eventually("nobody")
		apply("own0")
		eventually("local")
		s.here("clear", "--dev", "own0")
		eventually("nobody")
	})
}
