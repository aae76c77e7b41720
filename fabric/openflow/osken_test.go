package openflow

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"
)

// notByOSKen are kinds of messages that os-ken 4.2.2 cannot give back, with the reason.
var notByOSKen = map[string]string{
	"experimenter reply": "it adds 16 bytes for each, whatever the length, and reads beyond the end",
	"unknown":            "it has no parser for types that OpenFlow 1.3 does not define",
	"unknown request":    "it has no parser for types that OpenFlow 1.3 does not define",
	"unknown reply":      "it has no parser for types that OpenFlow 1.3 does not define",
}

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
	for _, k := range kinds {
		if notByOSKen[k.name] != "" {
			continue
		}
		for _, m := range corpus(k.draw, perKind, true) {
			if out, ok := m.(*PacketOut); ok && len(out.Actions) == 0 && len(out.Data) > 0 {
				continue // it writes its fields over the first bytes of the packet
			}
			b, err := Append(nil, uint32(len(all)), m)
			if err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			names, all = append(names, k.name), append(all, b)
		}
	}
	c = exec.Command(strings.TrimSpace(string(python)), "testdata/osken.py")
	c.Stdin = bytes.NewReader(bytes.Join(all, nil))
	problems.Reset()
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("osken.py: %v\n%s", err, &problems)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(all) {
		t.Fatalf("os-ken answers %d messages, want %d", len(lines), len(all))
	}
	for i, line := range lines {
		if want := hex.EncodeToString(all[i]); line != want {
			t.Errorf("%s %d: os-ken gives\n%s\nwant\n%s", names[i], i, line, want)
		}
	}
	t.Logf("%d messages of %d kinds", len(all), len(kinds)-len(notByOSKen))
}
