package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/pending"
)

func TestUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0", "eth1")
	if r := w.run("undo"); r.code != exitFailed || !strings.Contains(r.err, "no change is in the history") {
		t.Errorf("without a change: exit %d, %s", r.code, r.err)
	}
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("assign", "rest", "--dev", "eth0", "--conn", "tcp 10.0.0.1:443 10.0.0.2:55000")
	w.must("apply", "-f", w.config("eth0", "1Gbit")) // changes nothing
	w.must("clear", "--dev", "eth0")
	w.must("undo")
	state, _ := fakeShaper{w.dir, group.HTB}.load("eth0")
	if limit, _ := w.limit("eth0"); limit != "1Gbit" || len(state.Assigned) != 1 {
		t.Errorf("after the undo of clear the limit is %q, and %d connections are assigned", limit, len(state.Assigned))
	}
	w.must("undo")
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("after the undo of the undo the limit is %q", limit)
	}
	w.must("apply", "-f", w.write("two.yaml", document("eth0", "2Gbit")+"---\n"+document("eth1", "3Gbit")))
	var all []localChange
	if err := json.Unmarshal([]byte(w.must("history", "-o", "json").out), &all); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, c := range all {
		commands = append(commands, c.Command)
	}
	if got := strings.Join(commands, " "); got != "apply undo undo clear apply" || len(all[0].Devices) != 2 {
		t.Errorf("the history is %+v", all)
	}
	if r := w.must("history", "--dev", "eth1"); strings.Count(r.out, "\n") != 2 {
		t.Errorf("the history of eth1 is\n%s", r.out)
	}
	if r := w.run("undo", "--change", "1", "--dev", "eth1"); r.code != exitFailed || !strings.Contains(r.err, "did not change eth1") {
		t.Errorf("another device: exit %d, %s", r.code, r.err)
	}
	if r := w.run("undo", "--change", "99"); r.code != exitFailed || !strings.Contains(r.err, "change 99") {
		t.Errorf("an unknown change: exit %d, %s", r.code, r.err)
	}
	w.must("undo", "--dev", "eth1")
	if one, _ := w.limit("eth0"); one != "2Gbit" {
		t.Errorf("the undo for eth1 changed eth0 to %q", one)
	}
	if limit, _ := w.limit("eth1"); limit != "" {
		t.Errorf("after its undo eth1 has %q", limit)
	}
	w.must("undo", "--change", "1", "--confirm-within", "1s")
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("before the first change was no limit, after its undo there is %q", limit)
	}
	w.waitForLimit("2Gbit") // nobody has confirmed
}

// An unconfirmed clear is rolled back.
func TestClearRollsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("clear", "--dev", "eth0", "--confirm-within", "1s")
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("the limit is %q at once", limit)
	}
	w.waitForLimit("1Gbit")
	w.waitForStage(pending.None)
	w.must("clear", "--dev", "eth0", "--confirm-within", "1h")
	if r := w.must("confirm"); !strings.Contains(r.out, "eth0") {
		t.Errorf("confirm: %s", r.out)
	}
	w.must("clear", "--dev", "eth0", "--confirm-within", "1h") // nothing to clear
	if w.stage() != pending.None {
		t.Error("a confirmation is pending although nothing was changed")
	}
}
