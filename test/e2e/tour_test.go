package e2e

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// The commands of docs/tour.md make a network with a controller and relay agents, and a reservation by which iperf3 has more than without:
//
//	files, relay1, controller ── w1 ═══ north 40 Mbit/s, 20 ms; south 20 Mbit/s, 60 ms, loss ═══ e1 ── store, relay2
func TestTour(t *testing.T) {
	labtest.NeedRoot(t)
	commands := strings.Join(codeBlocks(t, "tour.md", "Do it yourself", "sh"), "")
	if strings.Count(commands, "\n") < 20 {
		t.Fatalf("docs/tour.md has the commands %q", commands)
	}
	labtest.Try(t, func(t *labtest.Check) {
		t.Cleanup(func() { _ = lab.Down("tour"); _ = os.RemoveAll("/tmp/tour") })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "bash", "-e", "-c", commands)
		c.Dir, c.WaitDelay = "../..", 5*time.Second
		c.Env = append(os.Environ(), "PATH="+programDir(t)+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// iperf3 prints the total of its server in the line "receiver".
		var rates []float64
		for _, m := range regexp.MustCompile(`([\d.]+) Mbits/sec\s+receiver`).FindAllStringSubmatch(string(out), -1) {
			rate, _ := strconv.ParseFloat(m[1], 64)
			rates = append(rates, rate)
		}
		if len(rates) != 2 || rates[1] < 20 || rates[0] > rates[1]/2 {
			t.Errorf("iperf3 had %v Mbit/s beside UDP, as it is and carried: want less than half, and 20 or more of 30 that are reserved\n%s", rates, out)
		}
		if !strings.Contains(string(out), "2 were redirected") { // iperf3 has two connections
			t.Errorf("the network does not say that it redirected 2 connections:\n%s", out)
		}
		labs, err := lab.Leftovers()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range labs {
			if l.Name == "tour" {
				t.Errorf("the lab is still there: %+v", l)
			}
		}
	})
}
