package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// examples/reservation.yaml is valid, and check describes it.
func TestReservationDocument(t *testing.T) {
	w := newWorld(t)
	if r := w.must("check", "--offline", "-f", "../examples/reservation.yaml"); !strings.HasPrefix(r.out, "reservation ") || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.must("check", "--offline", "-f", "../examples/reservation.yaml", "-o", "json"); !strings.Contains(r.out, `"reservations": [`) {
		t.Errorf("%s", r.out)
	}
}

// docs/configuration.md has every key of a reservation: those that the error of an unknown key lists.
func TestReservationKeys(t *testing.T) {
	w := newWorld(t)
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for text, at := range map[string]string{"zzz: 1": "", "flows: [{zzz: 1}]": "flows[]."} {
		r := w.run("check", "--offline", "-f", w.write("keys.yaml", "kind: Reservation\nname: n\n"+text+"\n"))
		_, keys, found := strings.Cut(r.err, "write one of ")
		keys, _, _ = strings.Cut(keys, "\n")
		if !found {
			t.Errorf("%s: %s", text, r.err)
		}
		for _, key := range strings.Split(keys, ", ") {
			if key != "kind" && !regexp.MustCompile("(?m)^\\| .*`"+regexp.QuoteMeta(at+key)+"`.* \\|").Match(page) {
				t.Errorf("docs/configuration.md has no row of `%s%s`", at, key)
			}
		}
	}
}

// A machine keeps no reservations: plan and apply refuse them without a server, beside other documents too, and with one they create none.
func TestReservationNeedsController(t *testing.T) {
	w := newWorld(t)
	const reservation = "kind: Reservation\nname: backup\nfrom: h1\nto: h2\nrate: 100Mbit\nfor: 2h\n"
	alone := w.write("alone.yaml", reservation)
	beside := w.write("beside.yaml", "kind: Interface\ndev: lo\nout: {limit: 1Gbit, groups: [{name: all, default: true}]}\n---\n"+reservation)
	for _, args := range []string{"apply -f ", "apply --dry-run -f ", "plan -f "} {
		for file, line := range map[string]string{alone: "alone.yaml:1", beside: "beside.yaml:5"} {
			want := line + ": kind: a reservation needs a controller, which grants it across the network, and " + strings.Fields(args)[0] + " without --server changes this machine alone: write reservation backup in a file of its own"
			if r := w.run(strings.Fields(args + file)...); r.code != exitUsage || !strings.Contains(r.err, want) {
				t.Errorf("%s: exit %d: %s, want %s", args, r.code, r.err, want)
			}
		}
	}
	if r := w.run("apply", "--server", "https://127.0.0.1:1", "--host", "h1", "-f", beside); r.code != exitUsage || !strings.Contains(r.err, `beside.yaml:5: kind: apply does not create reservations: write reservation backup in a file of its own, and create it with "headgate reserve apply -f FILE"`) {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
