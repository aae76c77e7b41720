package switching

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// The values that the requirement quotes are the means of the table as printed.
func TestSeedTable(t *testing.T) {
	if len(seedMeans) != len(seedRates) {
		t.Fatalf("the table has %d rates, want %d", len(seedMeans), len(seedRates))
	}
	want := seedCells{seedBridge: {126.2, 46.7, 19.1, 55.0}, seedOpenvSwitch: {126.2, 47.3, 15.8, 55.0}}
	for i, row := range want {
		for j, v := range row {
			if got := seedMeans[55][i][j]; math.Abs(got-v) > 0.051 {
				t.Errorf("at 55 Mbit/s column %d.%d is %v, want %v", i, j, got, v)
			}
		}
	}
	for _, rate := range seedRates {
		// The rate from PM to VM1 equals the requested rate at all rates: a shifted column would show.
		for i, row := range seedMeans[rate] {
			if math.Abs(row[pmvm1]-float64(rate)) > 0.2 {
				t.Errorf("at %d Mbit/s switch %d has %v from PM to VM1", rate, i, row[pmvm1])
			}
		}
	}
}

// Every cell of the thesis's table is a claim with the thesis's value, and every higher rate is
// measured through all sites.
func TestEveryCellIsClaimed(t *testing.T) {
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	byID, withPaper := map[string]bench.Claim{}, 0
	for _, c := range claims {
		byID[c.ID] = c
		if c.Paper != nil {
			withPaper++
		}
	}
	if want := len(seedRates) * seedSwitches * measures; withPaper != want {
		t.Errorf("%d claims have the thesis's value, the table has %d", withPaper, want)
	}
	for id, paper := range map[string]float64{
		"survey/bridge/55Mbit/cpu": 126.2, "survey/bridge/55Mbit/vm2-pm": 19.1, "survey/open-vswitch/55Mbit/vm1-vm2": 47.3, "survey/open-vswitch/5Mbit/cpu": 22.75,
	} {
		if c := byID[id]; c.Paper == nil || math.Abs(*c.Paper-paper) > 0.051 {
			t.Errorf("%s has the thesis's value %v, want %v", id, c.Paper, paper)
		}
	}
	for _, s := range sites {
		for _, at := range []string{"55Mbit", "200Mbit", "1000Mbit", "unlimited"} {
			for _, m := range measureNames {
				id := fmt.Sprintf("survey/%s/%s/%s", s.id, at, m)
				if _, ok := byID[id]; !ok {
					t.Errorf("no claim %s", id)
				}
			}
		}
	}
	if c := byID["survey/bridge/drawn-1/cpu"]; !strings.Contains(c.Drawn, "Mbit on each hop") {
		t.Errorf("the random rate is described as %q", c.Drawn)
	}
}

func TestQuickIsQuick(t *testing.T) {
	if took := Bench(bench.NewDraw(1)).Takes(bench.Options{Quick: true}); took > 100*time.Second {
		t.Errorf("--quick takes %v by its own estimate", took)
	}
}

// The loads pass the same sites next to each other.
func TestSitesAreInterleaved(t *testing.T) {
	cases := Bench(bench.NewDraw(1)).Cases
	for i := range sites {
		if !strings.HasSuffix(cases[i].Name, "/5Mbit") {
			t.Errorf("case %d is %s, want one at 5 Mbit/s", i, cases[i].Name)
		}
	}
}

// The clock of this program advances while it works, and does not for one that has exited.
func TestClock(t *testing.T) {
	var c clock
	c.watch(os.Getpid())
	c.zero()
	spin := func(d time.Duration) {
		for until := bench.Ran(os.Getpid()) + d; bench.Ran(os.Getpid()) < until; {
		}
	}
	before := c.total()
	spin(200 * time.Millisecond)
	if used := c.total() - before; used < 200*time.Millisecond || used > 5*time.Second {
		t.Errorf("200 ms of work were counted as %v", used)
	}
	child := exec.Command("sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; read line")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var of clock
	of.watch(child.Process.Pid)
	for until := time.Now().Add(20 * time.Second); of.total() < 5*time.Millisecond && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	alive := of.total()
	in.Close()
	if err := child.Wait(); err == nil {
		t.Log("the child read a line")
	}
	if dead := of.total(); alive < 5*time.Millisecond || dead < alive {
		t.Errorf("a program had %v, and %v after it had exited", alive, dead)
	}
	pids, err := softirqThreads()
	if err != nil || len(pids) == 0 {
		t.Errorf("ksoftirqd: %v, %v", pids, err)
	}
}

// The time of each second is in percent of one processor.
func TestClockEach(t *testing.T) {
	var c clock
	c.watch(os.Getpid())
	c.zero()
	var stop atomic.Bool
	go func() {
		for !stop.Load() {
		}
	}()
	percent, err := c.each(t.Context(), 2)
	stop.Store(true)
	// The test needs at least a tenth of one processor.
	if err != nil || len(percent) != 2 || percent[0] < 10 || percent[0] > 250 {
		t.Errorf("one busy thread: %v %%, %v", percent, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.each(ctx, 1); err == nil {
		t.Error("no error for an interruption")
	}
}

func TestSecondsOf(t *testing.T) {
	got, err := secondsOf([]byte(`{"intervals": [
		{"sum": {"seconds": 1.0001, "bits_per_second": 19986900}}, {"sum": {"seconds": 0.99, "bits_per_second": 20054296}},
		{"sum": {"seconds": 0.0002, "bits_per_second": 7}}], "end": {}}`))
	if err != nil || len(got) != 2 || got[0] != 19.9869 {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"intervals": [], "error": "the server has terminated"}`: "terminated", `{"intervals": []}`: "no interval", `iperf3: no`: "cannot parse",
	} {
		if _, err := secondsOf([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The thesis's curves are in the plots of its rates, whatever was measured.
func TestPlots(t *testing.T) {
	b := Bench(bench.NewDraw(1))
	claims, err := b.Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		v := 10 * float64(i%7+1)
		claims[i].Ours = &v
	}
	dir := os.Getenv("KEEP_PLOTS")
	b.Cases, b.Tools, b.Plots = nil, nil, func([]bench.Claim) []plot.Plot { return plots(claims) }
	if dir == "" {
		dir = t.TempDir()
	}
	r, err := b.Run(t.Context(), bench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteReport(dir, b); err != nil {
		t.Fatal(err)
	}
	for _, p := range plots(claims) {
		svg, err := os.ReadFile(filepath.Join(dir, "switching", p.File+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.File, "seed-") && !strings.Contains(string(svg), "Xen bridge") {
			t.Errorf("%s does not show the thesis's bridge", p.File)
		}
	}
}
