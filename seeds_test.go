package headgate

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSeeds: what docs/seeds.md names is there: tests, files, commands and rows of the benches.
func TestSeeds(t *testing.T) {
	text, err := os.ReadFile("docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := os.ReadFile("docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests, benches strings.Builder
	files := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return filepath.SkipDir
		}
		files[path] = true
		to := &tests
		switch {
		case strings.HasSuffix(path, "_test.go"):
		case strings.HasPrefix(path, "bench/") && strings.HasSuffix(path, ".go"):
			to = &benches
		default:
			return nil
		}
		b, err := os.ReadFile(path)
		to.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	has := func(all, what string) bool { return strings.Contains(all, what) }
	somewhere := func(file string) bool {
		for path := range files {
			if path == file || strings.HasSuffix(path, "/"+file) {
				return true
			}
		}
		return false
	}
	found := 0
	quoted := regexp.MustCompile("`([^`]+)`")
	command := regexp.MustCompile(`^headgate( [a-z]+)+`)
	for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
		what := m[1]
		ok := true
		switch {
		case strings.HasPrefix(what, "Test"):
			ok = has(tests.String(), "func "+what+"(")
		case strings.HasPrefix(what, "headgate "):
			name := command.FindString(what)
			if bench, ok := strings.CutPrefix(name, "headgate bench "); ok {
				name = "headgate bench"
				if !has(benches.String(), `"`+bench+`"`) {
					t.Errorf("docs/seeds.md has `%s`: there is no bench %s", what, bench)
				}
			}
			ok = has(string(commands), "## "+name+"\n")
			for _, only := range regexp.MustCompile(`--only ([a-z-]+)`).FindAllStringSubmatch(what, -1) {
				if !has(benches.String(), `{ID: "`+only[1]+`"`) {
					t.Errorf("docs/seeds.md has `%s`: no bench has a row %s", what, only[1])
				}
			}
		case strings.HasSuffix(what, ".go") || strings.HasSuffix(what, ".c") || regexp.MustCompile(`^[a-z]+/[a-z]+$`).MatchString(what):
			ok = somewhere(what)
		default:
			continue
		}
		found++
		if !ok {
			t.Errorf("docs/seeds.md has `%s`, which is not there", what)
		}
	}
	if found < 150 {
		t.Errorf("docs/seeds.md names only %d things that this test understands", found)
	}
}
