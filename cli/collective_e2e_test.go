package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/collective/host"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// collectiveRun is "headgate collective run" on the sockets of this process.
type collectiveRun struct {
	t    testing.TB
	cmd  *exec.Cmd
	said chan []host.State
}

func startCollective(t testing.TB, args ...string) *collectiveRun {
	t.Helper()
	cgroup := labtest.Cgroup(t)
	file := filepath.Join(t.TempDir(), "collective.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "kind: Collective\nname: db\ncgroup: /%s\n", filepath.Base(cgroup)), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &collectiveRun{t: t, said: make(chan []host.State, 1000)}
	r.cmd = exec.Command(self, append([]string{"collective", "run", "-f", file, "-o", "json", "--interval", "200ms"}, args...)...)
	r.cmd.Env = append(os.Environ(), selfEnv+"=1")
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(syscall.SIGKILL) })
	go func() {
		defer close(r.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s []host.State
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				r.said <- s
			}
		}
	}()
	r.wait(10*time.Second, "it watches", func(host.State) bool { return true })
	return r
}

// end ends it by a signal, and says whether it went well.
func (r *collectiveRun) end(s syscall.Signal) error {
	if r.cmd.ProcessState != nil {
		return nil
	}
	r.cmd.Process.Signal(s)
	return r.cmd.Wait()
}

// wait reads states until one is as it should be.
func (r *collectiveRun) wait(most time.Duration, what string, ok func(host.State) bool) host.State {
	r.t.Helper()
	for end := time.After(most); ; {
		select {
		case s, more := <-r.said:
			if !more {
				r.t.Fatalf("it ended before %s", what)
			}
			if len(s) == 1 && ok(s[0]) {
				return s[0]
			}
		case <-end:
			r.t.Fatalf("not within %v: %s", most, what)
		}
	}
}

// acked is what the connections to two ports had acknowledged.
func acked(s host.State) (a, b float64) {
	for _, c := range s.Connections {
		switch {
		case strings.HasSuffix(c.Remote, ":5001"):
			a = float64(c.Acked)
		case strings.HasSuffix(c.Remote, ":5002"):
			b = float64(c.Acked)
		}
	}
	return a, b
}

// Two connections of 4.8 and 2.4 Mbit/s, and UDP that leaves them 4 of 10 Mbit/s for a
// while, which TCP by itself would halve between them:
//
//	server ── router ──10 Mbit/s, 20 ms── client
//
// They are controlled meanwhile, at 2 to 1, and the program ends well.
func TestCollectiveRun(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		r := startCollective(t)
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: 10 * unit.Mbit, RTT: 20 * time.Millisecond})
		db := func(name string, port uint16, rate unit.Rate) traffic.Flow {
			return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, Congestion: "cubic", Schedule: traffic.Constant(rate)}
		}
		flows := []traffic.Flow{db("db1", 5001, 4_800*unit.Kbit), db("db2", 5002, 2_400*unit.Kbit)}
		s, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: 60 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Stop(); s.Wait() }()
		time.Sleep(8 * time.Second)
		udp := traffic.Flow{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(6 * unit.Mbit)}
		disturb, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{udp}, traffic.Options{Duration: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		begin := r.wait(6*time.Second, "it is controlled", func(s host.State) bool { return s.Controlling })
		time.Sleep(4 * time.Second)
		for len(r.said) > 0 {
			begin = (<-r.said)[0]
		}
		time.Sleep(8 * time.Second)
		end := begin
		for len(r.said) > 0 {
			end = (<-r.said)[0]
		}
		a0, b0 := acked(begin)
		a1, b1 := acked(end)
		t.Logf("%.2f and %.2f Mbit/s, ratio %.2f; %+v", (a1-a0)/1e6, (b1-b0)/1e6, (a1-a0)/(b1-b0), end)
		if ratio := (a1 - a0) / (b1 - b0); ratio < 1.7 || ratio > 2.3 {
			t.Errorf("the ratio is %.2f, want 2", ratio)
		}
		var shown strings.Builder
		asked := exec.Command(r.cmd.Path, "collective", "show")
		asked.Env, asked.Stdout = r.cmd.Env, &shown
		if err := asked.Run(); err != nil || !strings.Contains(shown.String(), "controlled") || strings.Count(shown.String(), "\n") < 3 {
			t.Errorf("collective show says %q, %v", shown.String(), err)
		}
		disturb.Wait()
		if err := r.end(syscall.SIGTERM); err != nil {
			t.Errorf("it does not end well: %v", err)
		}
	})
}
