package report

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/probe/mesh"
)

// The table has every kind of result.
func TestWriteMesh(t *testing.T) {
	text, err := os.ReadFile("../mesh/testdata/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows mesh.Rows
	for line := range strings.Lines(string(text)) {
		var r mesh.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	var b bytes.Buffer
	if err := WriteMesh(&b, []config.Server{{Name: "fra"}, {Name: "ams"}, {Name: "lab"}}, rows); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/mesh.table", b.String())
}
