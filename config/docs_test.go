package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedConfiguration parses every document but labs in the
// Markdown files, so that copied examples are valid.
func TestDocumentedConfiguration(t *testing.T) {
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if !strings.Contains(block, "kind: Interface") && !strings.Contains(block, "kind: Servers") && !strings.Contains(block, "kind: Controllers") &&
				!strings.Contains(block, "kind: Relay") && !strings.Contains(block, "kind: Network") && !strings.Contains(block, "kind: Collective") && !strings.Contains(block, "kind: Reservation") {
				continue
			}
			found++
			if _, err := Parse(path, []byte(block)); err != nil {
				t.Errorf("%v\nin\n%s", err, block)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no example found: this test checks nothing")
	}
}
