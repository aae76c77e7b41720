package cli

import (
	"strings"
	"testing"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/tokenrate"
	"headgate/probe/tune"
	"headgate/unit"
)

// The proposed limit is below the confidence interval of the token rate. Without an estimate
// nothing is proposed.
func TestPropose(t *testing.T) {
	rate := func(e probe.Estimate) *path.Answer {
		return &path.Answer{TokenRate: &tokenrate.Result{Rate: e, Bucket: probe.Estimate{Value: 5e6}}}
	}
	joint := rate(probe.NoEstimate("the train met no limit"))
	joint.TokenRate.Joint = &tokenrate.Joint{Rate: 9.5e8, Bytes: 3_000_000, Took: 0.1}
	tiny := rate(probe.Estimate{Value: 5e8, Low: 4.99e8, High: 5.01e8})
	tiny.TokenRate.Bucket = probe.Estimate{Value: 1600}
	for name, c := range map[string]struct {
		a       *path.Answer
		inForce unit.Rate
		limit   unit.Rate
		cannot  string // or a note
	}{
		"known":               {rate(probe.Estimate{Value: 5e8, Low: 4.99e8, High: 5.01e8}), 0, 494 * unit.Mbit, ""},
		"without an interval": {rate(probe.Estimate{Value: 1e8}), 0, 99 * unit.Mbit, ""},
		"four digits, down":   {rate(probe.Estimate{Value: 123_456_789, Low: 123_456_789, High: 123_456_789}), 0, 122_200 * unit.Kbit, ""},
		"wide":                {rate(probe.Estimate{Value: 1e8, Low: 8e7, High: 1.2e8}), 0, 79_200 * unit.Kbit, "from 80.00Mbit to 120.0Mbit"},
		"a tiny bucket":       {tiny, 0, 494 * unit.Mbit, "is smaller than Headgate's burst of 37.2kB"},
		"no limit":            {joint, 0, 0, "at least 950.0Mbit, or a bucket that 3MB do not empty: write --bytes 400MB"},
		"others":              {rate(probe.Estimate{Value: 5e8, Low: 5e8, AtLeast: true}), 0, 0, "cross traffic"},
		"not measured":        {nil, 0, 0, "not measured"},
		"capacity alone":      {&path.Answer{}, 0, 0, "was not measured"},
		"our own":             {rate(probe.Estimate{Value: 4.95e8, Low: 4.94e8, High: 4.96e8}), 495 * unit.Mbit, 0, `"headgate clear --dev eth0"`},
		"our own, no limit":   {joint, 960 * unit.Mbit, 0, `"headgate clear --dev eth0"`},
		"below our own":       {rate(probe.Estimate{Value: 1e8, Low: 1e8, High: 1e8}), 495 * unit.Mbit, 99 * unit.Mbit, ""},
	} {
		p := propose(c.a, "eth0", c.inForce, tune.Margin, tuneBudget)
		said := p.Cannot + strings.Join(p.Notes, " ")
		if p.Limit != c.limit || (p.Cannot == "") != (c.limit > 0) || !strings.Contains(said, c.cannot) || c.cannot == "" && said != "" {
			t.Errorf("%s: %+v, want %v with %q", name, p, c.limit, c.cannot)
		}
	}
}

// Only the limit changes. Guarantees that exceed the new limit are an error.
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
	tuneOf := func(dev string, files ...string) (*tuneTarget, error) {
		return a.loadTuneTarget(tuneCommand(a), dev, files)
	}
	load := func() *tuneTarget {
		d, err := tuneOf("eth0", file)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := load()
	if !d.wants(probe.Out) || d.wants(probe.In) {
		t.Error("the directions are not those of the file")
	}
	d.setLimit(probe.Out, 500*unit.Mbit)
	text, set, err := d.document()
	want := strings.Replace(`kind: Interface
dev: eth0
perspective: host
engine: htb
out:
  limit: 500Mbit
  spare: proportional
  groups:
    - name: web
      guarantee: 40%
      match:
        - {dport: 443}
    - name: rest
      guarantee: 300Mbit
      default: true
`, "  spare: proportional\n", "", 1)
	if err != nil || text != want || len(set.Interfaces) != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	d = load()
	d.setLimit(probe.Out, 400*unit.Mbit)
	if _, _, err := d.document(); err == nil || !strings.Contains(err.Error(), "guarantees total") {
		t.Errorf("guarantees of 460 Mbit in 400: %v", err)
	}
	if again := load(); again.Out.Limit != unit.Gbit {
		t.Errorf("the loaded configuration has %v", again.Out.Limit)
	}
	d, err = tuneOf("eth1")
	if err != nil {
		t.Fatal(err)
	}
	d.setLimit(probe.Out, 500*unit.Mbit)
	d.setLimit(probe.In, 50*unit.Mbit)
	text, _, err = d.document()
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

// A new limit with too much loss or a wrong rate is an error.
func TestJudge(t *testing.T) {
	for want, c := range map[string]recheck{
		"":                          {Sent: 105e6, Rate: 100e6, Lost: 0.03, Own: 0.03},
		"lost on the path":          {Sent: 105e6, Rate: 100e6, Lost: 0.05, Own: 0.03},
		"through a limit":           {Sent: 105e6, Rate: 104e6},
		"only 60.00Mbit of a limit": {Sent: 105e6, Rate: 60e6},
	} {
		err := c.check(probe.Out, 100*unit.Mbit)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
