package e2e

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

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// A configuration that a user applies on the host stays in force. The service reports the owner of the
// device and the remedies, and each remedy works.
func TestServiceLocalApply(t *testing.T) {
	t.Parallel() // the test mostly waits
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
				text, err := s.command("show", "groups", "-o", "json").Output() // without notes about pending changes
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
			s.localCommand(append([]string{"apply", "-f", file}, args...)...)
		}
		problem := func(what string) func() bool {
			return func() bool {
				d, _ := s.device("dev0")
				if d.Error == nil {
					return what == ""
				}
				return what != "" && strings.Contains(*d.Error, what)
			}
		}
		left := func(what, remedy string) {
			t.Helper()
			s.eventually("the problem contains "+what, problem(what))
			s.eventually("the problem contains "+remedy, problem(remedy))
			s.eventually("the owner is local", s.owned("dev0", "local"))
			if !limit("90Mbit")() {
				t.Errorf("the local configuration is not in force: %s", s.localCommand("show"))
			}
		}
		helped := func(rate string) {
			t.Helper()
			s.eventually("the service's limit is in force", limit(rate))
			s.eventually("no problem", problem(""))
			s.eventually("the owner is the controller", s.owned("dev0", "controller"))
		}
		put("20Mbit")
		helped("20Mbit")
		apply("dev0")
		put("30Mbit")
		left("applied by hand", `"headgate clear --dev dev0"`)
		s.localCommand("clear", "--dev", "dev0")
		helped("30Mbit")
		apply("dev0")
		put("40Mbit")
		left("applied by hand", `"systemctl reload headgate"`) // systemctl sends this signal
		s.agent.Process.Signal(syscall.SIGHUP)
		helped("40Mbit")
		apply("dev0", "--confirm-within", "60s")
		put("50Mbit")
		left("awaits confirmation", `"headgate confirm --roll-back"`)
		s.localCommand("confirm", "--roll-back")
		helped("50Mbit")
		apply("dev0", "--confirm-within", "60s")
		put("60Mbit")
		left("awaits confirmation", `"headgate confirm"`)
		s.localCommand("confirm")
		left("applied by hand", `"headgate clear --dev dev0"`)

		// The agent checks devices without a desired state every ten seconds.
		eventually := func(owner string) {
			t.Helper()
			for end := time.Now().Add(30 * time.Second); !s.owned("own0", owner)(); time.Sleep(200 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the owner of own0 is not %s after 30 s: %s", owner, s.notes.String())
				}
			}
		}
		eventually("none")
		apply("own0")
		eventually("local")
		s.localCommand("clear", "--dev", "own0")
		eventually("none")
	})
}
