package cli

import (
	"strings"
	"testing"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// The configuration of a device with a pattern in its file is that of the device alone. Without a file both
// directions can be limited.
func TestTunedDocument(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	file := w.write("eth.yaml", `kind: Interface
dev: eth*
out:
  limit: 1Gbit
  groups:
    - {name: web, guarantee: 40%, match: [{dport: 443}]}
    - {name: rest, guarantee: 300Mbit, default: true}
`)
	a := fakeApp(w.dir)
	d, err := a.loadTuneTarget(tuneCommand(a), "eth0", []string{file})
	if err != nil {
		t.Fatal(err)
	}
	d.SetLimit(probe.Out, 500*unit.Mbit)
	text, set, err := d.Document()
	if err != nil || len(set.Interfaces) != 1 || !strings.Contains(text, "\ndev: eth0\n") || !strings.Contains(text, "guarantee: 40%") || strings.Contains(text, "in:") {
		t.Errorf("%v\n%s", err, text)
	}
	d, err = a.loadTuneTarget(tuneCommand(a), "eth1", nil)
	if err != nil {
		t.Fatal(err)
	}
	d.SetLimit(probe.Out, 500*unit.Mbit)
	d.SetLimit(probe.In, 50*unit.Mbit)
	text, _, err = d.Document()
	if r := w.runWith(text, "check", "-f", "-"); err != nil || r.code != exitOK || !strings.Contains(r.out, "in: limit 50Mbit") {
		t.Errorf("%v, %s%s\n%s", err, r.out, r.err, text)
	}
}

func TestTuneUsage(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	guest := w.write("guest.yaml", strings.Replace(document("eth0", "1Gbit"), "out:", "perspective: guest\nout:", 1))
	quantum := w.write("quantum.yaml", strings.Replace(document("eth0", "1Gbit"), "out:", "engine: quantum\nout:", 1))
	w.must("apply", "-f", w.config("eth1", "1Gbit"))
	for _, c := range []struct {
		args string
		code int
		err  string
	}{
		{"tune eth0", exitUsage, "--peer is missing"},
		{"tune --peer x", exitUsage, "missing argument"},
		{"tune eth0 --peer :1", exitUsage, "is invalid"},
		{"tune eth0 --peer x --margin 2", exitUsage, "%"},
		{"tune eth0 --peer x --margin 60%", exitUsage, "a margin of 60%"},
		{"tune eth0 --peer x --confirm-within 1ms", exitUsage, "1s to 24h"},
		{"tune eth0 --peer x -f " + guest, exitUsage, "inside the guest"},
		{"tune eth0 --peer x -f " + quantum, exitUsage, "engine: htb"},
		{"tune eth1 --peer x -f " + guest, exitUsage, "has no document for eth1"},
		{"tune eth1 --peer x", exitUsage, "select their file with -f"},
		{"tune eth7 --peer x", exitFailed, "no such device"},
	} {
		if r := w.run(strings.Fields(c.args)...); r.code != c.code || !strings.Contains(r.err, c.err) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, c.code, c.err, r.err)
		}
	}
}
