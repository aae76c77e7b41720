package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
)

// A mistake in a schedule is one in a configuration, and changes nothing.
func TestProbeScheduleUsage(t *testing.T) {
	w := newWorld(t)
	file := w.write("schedule.yaml", "budget: 1GB\nmeasures: [{measure: path, every: 1h}]\nhostz: []\n")
	for args, want := range map[string]string{"-f " + file: "schedule.yaml:3: ", "": "--file is missing"} {
		if r := w.run(append([]string{"probe", "schedule", "set"}, strings.Fields(args)...)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%q: %d %s, want %q", args, r.code, r.err, want)
		}
	}
}

// The example schedules in documentation and help are valid.
func TestDocumentedSchedules(t *testing.T) {
	_, block, found := strings.Cut(readFile(filepath.Join("..", "docs", "service.md")), "# schedule.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if !found {
		t.Error("no schedule in docs/service.md")
	}
	for _, text := range []string{block, scheduleExample} {
		if s, err := config.LoadSchedule("-", strings.NewReader(text)); err != nil || len(s.Measures) != 2 || len(s.Hosts) != 3 || len(s.Pairs) != 2 || len(s.Quiet) != 1 {
			t.Errorf("%v: %+v in\n%s", err, s, text)
		}
	}
}
