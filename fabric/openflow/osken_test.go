package openflow_test

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

// os-ken parses each message and serialises it to the same bytes.
func TestOSKen(t *testing.T) {
	if testing.Short() {
		t.Skip("installs os-ken")
	}
	c := exec.Command("scripts/osken")
	c.Dir = "../.."
	var problems bytes.Buffer
	c.Stderr = &problems
	python, err := c.Output()
	if err != nil {
		t.Fatalf("scripts/osken: %v\n%s", err, &problems)
	}

	var names []string
	var all [][]byte
	for _, k := range judge.Kinds {
		if judge.NotByOSKen[k.Name] != "" {
			continue
		}
		for _, m := range judge.Corpus(k, perKind, true) {
			if out, ok := m.(*openflow.PacketOut); ok && len(out.Actions) == 0 && len(out.Data) > 0 {
				continue // it writes its fields over the first bytes of the packet
			}
			b, err := openflow.Append(nil, uint32(len(all)), m)
			if err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			names, all = append(names, k.Name), append(all, b)
		}
	}
	lines, err := judge.OSKen(t.Context(), strings.TrimSpace(string(python)), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if want := hex.EncodeToString(all[i]); line != want {
			t.Errorf("%s %d: os-ken gives\n%s\nwant\n%s", names[i], i, line, want)
		}
	}
	t.Logf("%d messages of %d kinds", len(all), len(judge.Kinds)-len(judge.NotByOSKen))
}
