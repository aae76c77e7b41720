package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// Mistakes in a schedule have line numbers.
func TestProbeScheduleMistakes(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"measures: [{measure: path, every: 1h}]\nbudget: 1GB\nhostz: []\n":                                    ":3: ",
		"budget: 1GB\nmeasures:\n  - {measure: path, every: 1h}\n  - {measure: delay, every: 1h}\n":           ":4: measures[1].measure: \"delay\" is not a known measure",
		"budget: 1kB\nmeasures: [{measure: path, every: 1h}]\n":                                               ":1: budget: ",
		"budget: 1GB\nmeasures: [{measure: path, every: soon}]\n":                                             "duration \"soon\" is invalid",
		"budget: 1GB\nmeasures: [{measure: path, every: 1h}]\nquiet:\n  - {from: \"08:00\", to: \"08:00\"}\n": ":4: quiet[0]: ",
	} {
		file := w.write("schedule.yaml", text)
		if r := w.run("probe", "schedule", "set", "-f", file); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%q: %d %s, want %q", text, r.code, r.err, want)
		}
	}
	if r := w.run("probe", "schedule", "set"); r.code != exitUsage || !strings.Contains(r.err, "--file is missing") {
		t.Errorf("without a file: %d %s", r.code, r.err)
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
		if s, err := readSchedule("-", strings.NewReader(text)); err != nil || len(s.Measures) != 2 || len(s.Hosts) != 3 || len(s.Pairs) != 2 || len(s.Quiet) != 1 {
			t.Errorf("%v: %+v in\n%s", err, s, text)
		}
	}
}
