//go:build vm

package lab_test

import (
	"math"
	"os"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A link without offload gets netem if the kernel has it, and behaves as its file and its timeline
// specify:
//
//	client ── router ──wan── server      20 ms each way, 60 from 3 s on, and 5 % lost
//
// On an emulated processor only the lower bounds of times are meaningful. Of about 580 datagrams 5 %
// are 29. Netem's random numbers are not reproducible on every kernel, so the test allows 5 sigma: 3
// to 55. A stalled processor may deliver a datagram after the end of the run; the run counts it as
// lost, the link does not.
func TestNetemBackend(t *testing.T) {
	p := lab.Path{Spec: link.Spec{Rate: 5 * unit.Mbit, Queue: link.Amount{Segments: 100}, Delay: 20 * time.Millisecond}}
	lossy := p
	lossy.Loss.Probability = 0.05
	far := lossy
	far.Delay = 60 * time.Millisecond
	topology := wan(lab.LinkSpec{Forward: lossy, Back: p, NoOffload: true})
	if b := topology.Backends()[1]; b != lab.Netem {
		t.Fatalf("the backend is %s", b)
	}
	topology.Duration = 6 * time.Second
	topology.Flows = []traffic.Flow{{
		Name: "f", From: "client", To: "server", Protocol: traffic.UDP, Payload: 1000, Schedule: traffic.Constant(800 * unit.Kbit),
	}}
	topology.Programs = []lab.Program{
		{Name: "near", Node: "server", Command: []string{"ping", "-c", "1", "10.0.1.1"}},
		{Name: "far", Node: "server", Command: []string{"ping", "-c", "1", "10.0.1.1"}},
	}
	topology.Timeline = []lab.Event{
		{At: 3 * time.Second, Link: "wan", Back: &far},
		{At: 4 * time.Second, Start: "far"},
	}
	folder := t.TempDir()
	l := labtest.Up(t, topology)
	r, err := l.Run(t.Context(), lab.RunOptions{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Flow("f").Total
	t.Logf("%d datagrams, %d lost; the link %+v", f.Datagrams, f.LostDatagrams, r.Links[1].Forward.Total)
	if want := float64(f.Datagrams) * 0.05; math.Abs(float64(f.LostDatagrams)-want) > 5*math.Sqrt(want*0.95) {
		t.Errorf("%d of %d datagrams were lost, want 5 %%", f.LostDatagrams, f.Datagrams)
	}
	const late = 5
	if total := r.Links[1].Forward.Total; total.Frames+total.Dropped+late < f.Datagrams || total.Dropped+late < f.LostDatagrams {
		t.Errorf("the link counts %+v", total)
	}
	for _, p := range r.Programs {
		out, _ := os.ReadFile(p.Output)
		t.Logf("%s: %s", p.Name, out)
		// The answer may be lost in the other direction; then there is no time to check.
		minTime := 0.04
		if p.Name == "far" {
			minTime = 0.08
		}
		if took := p.EndedSeconds - p.StartedSeconds; took < minTime {
			t.Errorf("ping %s took %.3f s", p.Name, took)
		}
	}
}
