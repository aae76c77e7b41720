package program

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pipeline into docs/fabric.md")

// docs/fabric.md has the pipeline as it is.
func TestPipelineDocument(t *testing.T) {
	const file, begin, end = "../../docs/fabric.md", "<!-- pipeline: go test ./fabric/program -update -->\n", "<!-- end of the pipeline -->\n"
	var b strings.Builder
	b.WriteString("| table | does | priority | matches | actions |\n|---|---|---|---|---|\n")
	for _, table := range Pipeline {
		for n, r := range table.Rules {
			name, does := "", ""
			if n == 0 {
				name, does = fmt.Sprintf("%d %s", table.ID, table.Name), table.Does
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", name, does, r.Priority, r.Matches, r.Actions)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the pipeline", file)
	}
	if was == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the pipeline as it is: go test ./fabric/program -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
