package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/view"
)

// TestTopOnce runs top with a fake kernel, whose counters do not change.
func TestTopOnce(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	w.must("apply", "-f", w.config("eth0", "100Mbit"))
	r := w.must("top", "--once", "--interval", "100ms", "-o", "json")
	var f view.Frame
	if err := json.Unmarshal([]byte(r.out), &f); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	if len(f.Devices) != 1 || f.Devices[0].Dev != "eth0" || len(f.Devices[0].Directions) != 1 {
		t.Fatalf("the frame is %+v", f)
	}
	if total := f.Devices[0].Directions[0].Total; total.Ceiling != 100_000_000 {
		t.Errorf("the total is %+v", total)
	}
	if n := strings.Count(r.out, "\n"); n != 1 {
		t.Errorf("an interval has %d lines of JSON", n)
	}
}

func TestTopWithoutGroups(t *testing.T) {
	w := newWorld(t, "eth0")
	if r := w.run("top", "--once", "--dev", "eth0"); r.code != exitFailed || !strings.Contains(r.err, "eth0 has no bandwidth groups") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	r := w.must("top", "--once", "--interval", "100ms")
	if r.out != "" || !strings.Contains(r.err, "create them with \"headgate apply -f FILE\"") {
		t.Errorf("out %q, err %q", r.out, r.err)
	}
}
