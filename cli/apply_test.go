package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/internal/golden"
)

func TestApplyTwiceWritesOnce(t *testing.T) {
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	if r := w.must("plan", "-f", f); !strings.Contains(r.out, "eth0: 1 change\n  add    groups: 1Gbit") {
		t.Errorf("plan before apply:\n%s", r.out)
	}
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Fatal("plan changed the device")
	}
	w.must("apply", "-f", f, "--dry-run")
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Fatal("apply --dry-run changed the device")
	}
	for _, want := range []string{"1 change", "up to date"} {
		if r := w.must("apply", "-f", f); !strings.Contains(r.out, want) {
			t.Errorf("apply: %q is not in\n%s", want, r.out)
		}
	}
	if limit, writes := w.limit("eth0"); limit != "1Gbit" || writes != 1 {
		t.Errorf("after the same file twice: %s, %d writes; want 1Gbit, 1", limit, writes)
	}
	if r := w.must("plan", "-f", f); r.out != "eth0: up to date\n" {
		t.Errorf("plan after apply:\n%s", r.out)
	}
}

// TestApplyPrintsJSON: standard output has the changes as JSON and nothing else.
func TestApplyPrintsJSON(t *testing.T) {
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	for _, changes := range []int{1, 0} {
		r := w.must("apply", "-f", f, "-o", "json", "--confirm-within", "1h")
		var steps []diff.Entry
		if err := json.Unmarshal([]byte(r.out), &steps); err != nil || len(steps) != 1 || steps[0].Changes == nil || len(steps[0].Changes) != changes {
			t.Errorf("want one device with %d changes (%v):\n%s", changes, err, r.out)
		}
		if changes > 0 {
			if !strings.Contains(r.err, "rolls back at") {
				t.Errorf("no notice of the rollback: %s", r.err)
			}
			w.must("confirm")
		}
	}
}

// TestApplyReadsManyFiles: files, a directory and standard input at once.
func TestApplyReadsManyFiles(t *testing.T) {
	w := newWorld(t, "eth0", "eth1", "eth2", "eth3")
	one := w.write("one.yaml", document("eth0", "1Gbit"))
	w.write("more/a.yaml", document("eth1", "1Gbit"))
	w.write("more/b.yml", document("eth2", "1Gbit"))
	w.write("more/c.txt", "not ours")
	if r := w.runWith(document("eth3", "1Gbit"), "apply", "-f", one, "-f", filepath.Join(w.dir, "more"), "-f", "-"); r.code != exitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	for _, dev := range []string{"eth0", "eth1", "eth2", "eth3"} {
		if limit, _ := w.limit(dev); limit != "1Gbit" {
			t.Errorf("%s has %q", dev, limit)
		}
	}
}

func TestApplyReadsStandardInputOnce(t *testing.T) {
	w := newWorld(t, "eth0")
	if r := w.runWith(document("eth0", "1Gbit"), "apply", "-f", "-"); r.code != exitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if limit, _ := w.limit("eth0"); limit != "1Gbit" {
		t.Errorf("the limit is %q", limit)
	}
}

// TestForeignOnOneDeviceChangesNone: all devices are checked before any is changed, and
// all problems are reported.
func TestForeignOnOneDeviceChangesNone(t *testing.T) {
	w := newWorld(t, "eth0", "eth1", "eth2")
	w.write("eth1.foreign", "")
	w.write("eth2.foreign", "")
	f := w.write("all.yaml", document("eth0", "1Gbit")+"---\n"+document("eth1", "1Gbit")+"---\n"+document("eth2", "1Gbit"))
	r := w.run("apply", "-f", f)
	if r.code != exitFailed || !strings.Contains(r.err, "nothing was changed") ||
		!strings.Contains(r.err, "all.yaml:5: eth1 has foreign traffic control") || !strings.Contains(r.err, "all.yaml:9: eth2 has foreign traffic control") {
		t.Errorf("exit %d:\n%s", r.code, r.err)
	}
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Error("eth0 was changed although eth1 cannot be")
	}
}

func TestApplyReportsProgress(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	w.write("eth1.broken", "")
	f := w.write("all.yaml", document("eth0", "1Gbit")+"---\n"+document("eth1", "1Gbit"))
	r := w.run("apply", "-f", f)
	if r.code != exitFailed || !strings.Contains(r.err, "applied 1 of 2 devices") {
		t.Errorf("exit %d:\n%s", r.code, r.err)
	}
}

func TestPatterns(t *testing.T) {
	w := newWorld(t, "veth1", "veth2", "eth0", "lo", "hgi3")
	f := w.write("all.yaml", document("[hlv]*", "1Gbit")+"---\n"+document("veth2", "2Gbit")+"---\n"+document("tap*", "1Gbit"))
	r := w.must("apply", "-f", f)
	if !strings.Contains(r.err, `no device matches "tap*" now`) {
		t.Errorf("no notice of a pattern without devices: %s", r.err)
	}
	for dev, want := range map[string]string{"veth1": "1Gbit", "veth2": "2Gbit", "eth0": "", "lo": "", "hgi3": ""} {
		if limit, _ := w.limit(dev); limit != want {
			t.Errorf("%s has %q, want %q", dev, limit, want)
		}
	}
}

func TestMissingDevices(t *testing.T) {
	w := newWorld(t, "eth0")
	f := w.write("all.yaml", document("eth0", "1Gbit")+"---\n"+document("eth9", "1Gbit"))
	if r := w.run("apply", "-f", f); r.code != exitFailed || !strings.Contains(r.err, "all.yaml:5: eth9: no such device") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.must("apply", "-f", f, "--ignore-missing"); !strings.Contains(r.err, "skipping eth9") {
		t.Errorf("no notice of a skipped device: %s", r.err)
	}
	if limit, _ := w.limit("eth0"); limit != "1Gbit" {
		t.Errorf("eth0 has %q", limit)
	}
}

func TestEngineChanges(t *testing.T) {
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	w.must("apply", "-f", f)
	quantum := w.write("eth.yaml", document("eth0", "1Gbit")+"engine: quantum\n")
	if r := w.must("plan", "-f", quantum); !strings.Contains(r.out, "remove engine htb") {
		t.Errorf("plan does not show the change of engine:\n%s", r.out)
	}
	w.must("apply", "-f", quantum)
	if _, ok := (fakeShaper{w.dir, "htb"}).load("eth0"); ok {
		t.Error("the old engine is still there")
	}
	if r := w.must("show"); !strings.Contains(r.out, "eth0, enforced by quantum\n  out: limit 1Gbit of payload, ") || strings.Contains(r.out, "CEILING") {
		t.Errorf("show:\n%s", r.out)
	}
}

func TestSpeedWarnings(t *testing.T) {
	w := newWorld(t, "eth0", "tap0")
	w.write("eth0.speed", "1Gbit") // tap0 has none: the speed that a tap device reports is not real
	f := w.write("eth0.yaml", "kind: Interface\ndev: eth0\nout: {limit: 2Gbit, groups: [{name: a, default: true}]}\nin:\n  limit: 1Gbit\n  groups: [{name: a, default: true}]\n"+
		"---\n"+document("tap0", "1Gbit"))
	r := w.must("check", "-f", f)
	want := `eth0.yaml:3: out.limit: warning: 2Gbit is more than eth0's speed of 1Gbit: guarantees cannot be met above the link's speed
eth0.yaml:5: in.limit: warning: 1Gbit is not below eth0's speed of 1Gbit, so the queue forms at the other end of the link and cannot be controlled here: set 950Mbit or less
`
	if r.err != want {
		t.Errorf("got\n%s\nwant\n%s", r.err, want)
	}
}

func TestClear(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	w.must("apply", "-f", w.config("eth*", "1Gbit"))
	if r := w.must("clear", "--dev", "eth0"); r.out != "eth0: cleared\n" {
		t.Errorf("clear: %s", r.out)
	}
	if r := w.must("clear", "--dev", "eth0"); r.out != "eth0: nothing to clear\n" {
		t.Errorf("clear again: %s", r.out)
	}
	if r := w.must("clear", "--dev", "all", "-o", "json"); compact(r.out) != `[{"dev":"eth1","cleared":true}]` {
		t.Errorf("clear all: %s", r.out)
	}
	if r := w.run("clear", "--dev", "eth9"); r.code != exitFailed || !strings.Contains(r.err, "no such device") {
		t.Errorf("clear of no device: exit %d, %s", r.code, r.err)
	}
}

func TestShowExplainAssign(t *testing.T) {
	w := newWorld(t, "eth0")
	f := w.write("eth0.yaml", strings.ReplaceAll(readFile("testdata/eth0.yaml"), ", {cgroup: /system.slice/nginx.service}", ""))
	if r := w.must("show"); !strings.Contains(r.out, "no device has bandwidth groups") {
		t.Errorf("show of nothing: %s", r.out)
	}
	conn := []string{"--dev", "eth0", "--conn", "tcp 10.0.0.1:443 10.0.0.2:55000"}
	if r := w.run(append([]string{"assign", "web"}, conn...)...); r.code != exitFailed || !strings.Contains(r.err, "has no bandwidth groups") {
		t.Errorf("assign without groups: exit %d, %s", r.code, r.err)
	}
	explain := []string{"explain", "--dev", "eth0", "-f", f, "--packet"}
	if r := w.must(append(explain, "tcp 10.0.0.1:443 10.0.0.2:55000 vlan 5")...); !strings.Contains(r.err, "the result is from the file") || !strings.Contains(r.out, "tenant/web\n") {
		t.Errorf("explain before apply: %s%s", r.err, r.out)
	}
	w.must("apply", "-f", f)

	var explained strings.Builder
	for _, packet := range []string{
		"tcp 10.0.0.1:443 10.0.0.2:55000 vlan 5", "udp [fd00::1]:53 [fd00::2]:999", "tcp 192.0.2.1:1 192.0.2.2:443 ack",
		"icmp 192.0.2.1 192.0.2.2 dscp cs1", "udp 192.0.2.1 192.0.2.2 fragment", "arp",
	} {
		explained.WriteString(w.must(append(explain, packet)...).out)
	}
	golden.Compare(t, "testdata/explain.txt", explained.String())
	golden.Compare(t, "testdata/explain.json", w.must(append(explain, "tcp 192.0.2.2:1 192.0.2.1:443", "--direction", "in", "-o", "json")...).out)

	for name, want := range map[string]string{
		"web": `"web" is ambiguous: write "tenant/web" or "web"`, "nobody": `there is no group "nobody"; it has `,
	} {
		if r := w.run(append([]string{"assign", name}, conn...)...); r.code != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("assign %s: exit %d, %s", name, r.code, r.err)
		}
	}
	if r := w.must(append([]string{"assign", "tenant/web"}, conn...)...); r.out != "eth0: 1 connection in group tenant/web\n" {
		t.Errorf("assign: %s", r.out)
	}
	many := w.runWith("tcp [fd00::1]:1 [fd00::2]:2\n\nudp 10.0.0.1:1 10.0.0.2:2\n", "assign", "backup", "--dev", "eth0", "--conn", "-", "-o", "json")
	if many.code != exitOK || !strings.HasPrefix(compact(many.out), `{"dev":"eth0","group":"backup","connections":2`) { // it names those that this machine should have
		t.Errorf("assign from standard input: %s%s", many.out, many.err)
	}
	if r := w.runWith("tcp 10.0.0.1:1 10.0.0.2:2\nrubbish\n", "assign", "backup", "--dev", "eth0", "--conn", "-"); r.code != exitUsage || !strings.Contains(r.err, "line 2:") {
		t.Errorf("assign of rubbish: exit %d, %s", r.code, r.err)
	}
	// An assignment is found for both directions of the connection, in each direction that has the group.
	for packet, want := range map[string]string{
		"tcp [fd00::1]:1 [fd00::2]:2": "out: assigned at run time: group backup, class 1:14", "udp 10.0.0.2:2 10.0.0.1:1": "out: assigned at run time: group backup",
		"tcp [fd00::1]:1 [fd00::2]:3": "out: rule 1",
	} {
		if r := w.must("explain", "--dev", "eth0", "--packet", packet); !strings.Contains(r.out, want) {
			t.Errorf("explain %s: %s", packet, r.out)
		}
	}
	golden.Compare(t, "testdata/show.txt", w.must("show", "groups").out+w.must("show", "--over", "1ms").out+w.must("show", "assignments", "--dev", "eth0").out)
	golden.Compare(t, "testdata/show.json", w.must("show", "-o", "json").out)
	if r := w.must(append([]string{"unassign", "-o", "json"}, conn...)...); compact(r.out) != `{"dev":"eth0","connections":1}` {
		t.Errorf("unassign -o json: %s", r.out)
	}
	if r := w.must("show", "assignments"); !strings.Contains(r.out, "no connection is assigned") {
		t.Errorf("after unassign: %s", r.out)
	}

	other := w.write("other.yaml", document("eth0", "1Gbit"))
	if r := w.must("explain", "--dev", "eth0", "-f", other, "--packet", "arp"); !strings.Contains(r.err, "the rules in the file differ") {
		t.Errorf("explain with another file: %s", r.err)
	}
}

// compact removes the white space from JSON whose strings have none.
func compact(s string) string { return strings.Join(strings.Fields(s), "") }
