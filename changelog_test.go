package headgate

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestChangelog: each fragment begins with a tag that scripts/changelog knows, and a sentence.
func TestChangelog(t *testing.T) {
	fragments, err := filepath.Glob("changelog/unreleased/*.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`^(Security|Change|Bugfix|Enhancement): [^\n]+\n(\n|$)`)
	for _, f := range fragments {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(f) != "README.md" && !first.Match(text) {
			t.Errorf("%s: the first line must be \"TAG: sentence\", with Security, Change, Bugfix or Enhancement, and a blank line must follow", f)
		}
	}
}
