package program

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pipeline into docs/fabric.md")

// docs/fabric.md has the pipeline as it is, and its flattened form.
func TestPipelineDocument(t *testing.T) {
	const file = "../../docs/fabric.md"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(was)
	for name, tables := range map[string][]Table{"pipeline": Pipeline, "flattened pipeline": {Flat}} {
		begin, end := "<!-- "+name+": go test ./fabric/program -update -->\n", "<!-- end of the "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", file, name)
		}
		text = before + begin + document(tables) + end + after
	}
	if text == string(was) {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the pipeline as it is: go test ./fabric/program -update", file)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func document(tables []Table) string {
	var b strings.Builder
	b.WriteString("| table | does | priority | matches | actions |\n|---|---|---|---|---|\n")
	for _, table := range tables {
		for n, r := range table.Rules {
			name, does := "", ""
			if n == 0 {
				name, does = fmt.Sprintf("%d %s", table.ID, table.Name), table.Does
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", name, does, r.Priority, r.Matches, r.Actions)
		}
	}
	return b.String()
}
