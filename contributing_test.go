package headgate

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestContributing: each path that docs/contributing.md names exists, and the kinds of change that
// contributors come with have a line.
func TestContributing(t *testing.T) {
	text, err := os.ReadFile("docs/contributing.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for _, m := range regexp.MustCompile("`([a-z0-9_]+(?:/[A-Za-z0-9_.-]+)+)`").FindAllStringSubmatch(string(text), -1) {
		paths++
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("docs/contributing.md: %v", err)
		}
	}
	if paths < 15 {
		t.Errorf("docs/contributing.md names %d paths, want 15", paths)
	}
	for _, kind := range []string{"spare bandwidth is lent", "a selector", "a metric", "a verb", "a query of agents", "another message", "a claim", "a limiter type"} {
		if !strings.Contains(string(text), kind) {
			t.Errorf("docs/contributing.md does not say where %s goes", kind)
		}
	}
}
