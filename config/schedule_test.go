package config

import (
	"strings"
	"testing"
)

// Mistakes in a schedule have line numbers.
func TestScheduleMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"measures: [{measure: path, every: 1h}]\nbudget: 1GB\nhostz: []\n":                                    ":3: ",
		"budget: 1GB\nmeasures:\n  - {measure: path, every: 1h}\n  - {measure: delay, every: 1h}\n":           ":4: measures[1].measure: \"delay\" is not a known measure",
		"budget: 1kB\nmeasures: [{measure: path, every: 1h}]\n":                                               ":1: budget: ",
		"budget: 1GB\nmeasures: [{measure: path, every: soon}]\n":                                             "duration \"soon\" is invalid",
		"budget: 1GB\nmeasures: [{measure: path, every: 1h}]\nquiet:\n  - {from: \"08:00\", to: \"08:00\"}\n": ":4: quiet[0]: ",
	} {
		if _, err := LoadSchedule("-", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
