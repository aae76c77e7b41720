package headgate

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
)

// TestFields: what is written once more elsewhere has every selector (docs/adding-a-selector.md).
func TestFields(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	schema := func(name string) string {
		m := regexp.MustCompile(`(?s)\n    ` + name + `:\n(.*?)\n    [A-Z]`).FindStringSubmatch(read("api/openapi.yaml"))
		if m == nil {
			t.Fatalf("api/openapi.yaml has no schema %s", name)
		}
		return m[1]
	}
	selector, exclusions := schema("Selector"), schema("Exclusions")
	page, docs := read("web/src/resources/groups.ts"), read("docs/configuration.md")
	for _, f := range group.Fields {
		for where, text := range map[string]string{"Selector in api/openapi.yaml": selector, "Exclusions in api/openapi.yaml": exclusions} {
			if !strings.Contains(text, "\n        "+f.Name+":") {
				t.Errorf("%s has no %s", where, f.Name)
			}
		}
		if !strings.Contains(page, `"`+f.Name+`"`) {
			t.Errorf("web/src/resources/groups.ts has no %s", f.Name)
		}
		if !strings.Contains(docs, "`"+f.Name+"`") {
			t.Errorf("docs/configuration.md has no %s", f.Name)
		}
	}
}
