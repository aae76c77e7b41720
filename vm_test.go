package headgate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVMNames: each test that the files of scripts/vm choose or leave out exists, so that a renamed test does not
// drop out of "make test-vm" unseen.
func TestVMNames(t *testing.T) {
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		var all strings.Builder
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	script := read("scripts/vm/tests") + read("scripts/vm/attachment")
	tests := read("shaper/*/*_test.go") + read("lab/*_test.go") + read("collective/sockops/*_test.go")
	found := 0
	for _, m := range regexp.MustCompile(`(?m)(?:chosen='|\^Test\()([A-Z][^')]*)[')]`).FindAllStringSubmatch(script, -1) {
		for _, name := range strings.Split(m[1], "|") {
			found++
			if !regexp.MustCompile(`func Test` + name + `\(`).MatchString(tests) {
				t.Errorf("scripts/vm chooses Test%s, and there is none", name)
			}
		}
	}
	conformance := read("shaper/shapertest/*.go")
	for _, m := range regexp.MustCompile(`left_out="?'?(?:\$left_out\|)?([a-z][^'"]*)['"]`).FindAllStringSubmatch(script, -1) {
		for _, name := range strings.Split(m[1], "|") {
			found++
			if name = strings.ReplaceAll(name, "_", " "); !strings.Contains(conformance, `"`+name+`"`) {
				t.Errorf("scripts/vm leaves out %q, and there is none", name)
			}
		}
	}
	split := read("scripts/go-test")
	partly := tests + read("test/e2e/*_test.go")
	for _, m := range regexp.MustCompile(`\^(Test\w+)\$`).FindAllStringSubmatch(split, -1) {
		found++
		if !strings.Contains(partly, "func "+m[1]+"(") {
			t.Errorf("scripts/go-test chooses %s, and there is none", m[1])
		}
	}
	measures := regexp.MustCompile(regexp.MustCompile(`(?m)^measures='(.*)'$`).FindStringSubmatch(split)[1])
	for _, dir := range []string{"cli", "collective/host", "collective/sockops", "lab", "lab/traffic", "probe/session", "probe/train", "test/e2e"} {
		if files, err := filepath.Glob(dir + "/*_test.go"); err != nil || len(files) == 0 || !measures.MatchString(module+"/"+dir) {
			t.Errorf("scripts/go-test chooses package %s, and it has no tests, or is not chosen: %v, %v", dir, files, err)
		}
	}
	for _, word := range []string{"killed", "classification"} {
		if !strings.Contains(split, word) || !strings.Contains(conformance, `{"`+word+" ") {
			t.Errorf("scripts/go-test chooses conformance tests that begin with %q, and there is none", word)
		}
	}
	if found < 40 {
		t.Errorf("only %d names were found", found)
	}
}
