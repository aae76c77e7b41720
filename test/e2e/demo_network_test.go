package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"headgate.dev/headgate/cli"
	"headgate.dev/headgate/demo"
	"headgate.dev/headgate/lab/labtest"
)

// TestDemoNetwork runs the whole demo of a network, as a user would: a weak link is found by scheduled measurements, and what is then reserved is
// delivered, lent, carried over two paths by relay agents and moved when a link is cut. The measurement may be repeated, because on a busy machine
// switches and programs stall; the check for remains may not.
//
//	app, files ── w1 ── w2 (relay1) ══ 32.5 of 50 Mbit/s, 10 ms ══ e2 (relay2) ── e1 ── db, store
//	                └── w3 ══════════ 19 Mbit/s, 68 ms, loss ══════ e3 ────────────┘
func TestDemoNetwork(t *testing.T) {
	labtest.NeedRoot(t)
	t.Setenv(selfEnv, "1") // for the controller, the agents and the commands
	before := trace(t)
	labtest.Try(t, func(t *labtest.Check) {
		var out, progress bytes.Buffer
		code := cli.Run([]string{"demo", "--network", "-o", "json"}, strings.NewReader(""), &out, &progress)
		var r demo.NetworkResult
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("exit %d: %v\n%s%s", code, err, out.String(), progress.String())
		}
		if len(r.Promises) != 11 {
			t.Errorf("%d promises, want 11", len(r.Promises))
		}
		if code != exitOK || !r.OK {
			var b strings.Builder
			_ = r.Write(&b)
			t.Errorf("exit %d:\n%s\n%s", code, b.String(), progress.String())
		}
		for _, want := range []string{
			"[1/7] the bare network", "the measured capacity is in force", "409 link", "--carry relay", "carried by relay agents", "headgate report --reservations",
		} {
			if !strings.Contains(progress.String(), want) {
				t.Errorf("the progress has no %q:\n%s", want, progress.String())
			}
		}
	})
	checkDemoRemoved(t, before, demoName(os.Getpid()))
}
