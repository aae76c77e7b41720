package cli

import (
	"strings"
	"testing"
)

func TestDemoUsage(t *testing.T) {
	w := newWorld(t)
	if r := w.run("demo", "--serve", "--keep"); r.code != exitUsage || !strings.Contains(r.err, "serve") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("demo", "--engine", "frob"); r.code != exitUsage || !strings.Contains(r.err, "htb or quantum") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("demo", "--seed", "7"); r.code != exitUsage || !strings.Contains(r.err, "add --network") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("demo", "--network", "--fast"); r.code != exitUsage || !strings.Contains(r.err, "network") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "--interval", "1ms"); r.code != exitUsage || !strings.Contains(r.err, "100ms to 1h") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("top", "-o", "yaml"); r.code != exitUsage || !strings.Contains(r.err, "table or json") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
