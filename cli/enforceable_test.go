package cli

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/shaper/classifier"
)

// TestNotEnforceable checks that every command that reads a configuration reports
// settings that no device can enforce as mistakes in the file.
func TestNotEnforceable(t *testing.T) {
	w := newWorld(t, "eth0")
	var rules strings.Builder
	for n := range classifier.MaxShapes + 1 {
		fmt.Fprintf(&rules, "        - {src: 0.0.0.0/%d, dst: 0.0.0.0/%d}\n", n%30+1, n/30+1)
	}
	shapes := w.write("shapes.yaml", "kind: Interface\ndev: eth0\nin:\n  limit: 1Gbit\n  groups:\n    - name: a\n      default: true\n      match:\n"+rules.String())
	quantum := w.write("quantum.yaml", `kind: Interface
dev: eth0
engine: quantum
out:
  limit: 1Gbit
  groups: [{name: a, ceiling: 50%, default: true}, {name: b, groups: [{name: c}]}]
`)
	step := w.write("step.yaml", `kind: Interface
dev: eth0
engine: quantum
step: 30MB
out:
  limit: 1Gbit
  groups: [{name: a, guarantee: 20%, default: true}]
`)
	for _, command := range []string{"check", "plan", "apply", "agent", "explain --dev eth0 --packet arp"} {
		for file, want := range map[string]string{
			shapes:  "shapes.yaml:137: in.groups[0].match[128]: rule ",
			step:    "step.yaml:4: step: out: a step of 30MB exceeds the guarantee of every group per quantum of 1s (25MB), so no group would ever lend: write at most 25000000B",
			quantum: "quantum.yaml:3: engine: the engine quantum does not support ceilings, as in out group a (500Mbit of 1Gbit): write engine: htb, or remove the setting\nquantum.yaml:3: engine: the engine quantum does not support nested groups",
		} {
			r := w.run(append(strings.Fields(command), "-f", file)...)
			if r.code != exitUsage || !strings.HasPrefix(r.err, want) {
				t.Errorf("headgate %s: exit %d, want %d with %q\n%s", command, r.code, exitUsage, want, r.err)
			}
		}
	}
	enough := strings.Join(strings.SplitAfter(readFile(shapes), "\n")[:8+classifier.MaxShapes], "")
	w.must("check", "-f", w.write("enough.yaml", enough))
}
