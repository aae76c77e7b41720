package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// join joins another host to the service and starts its agent. at is the controller's address.
func (s *serviceTest) join(name string, node *lab.Node, at string) *lab.Cmd {
	s.t.Helper()
	s.must("PUT", "/v1/hosts/"+name, `{}`)
	var made struct{ Token string }
	if err := json.Unmarshal(s.must("POST", "/v1/tokens", fmt.Sprintf(`{"name": "join", "role": "agent", "host": %q}`, name)), &made); err != nil {
		s.t.Fatal(err)
	}
	token, dir := filepath.Join(s.dir, name+".token"), filepath.Join(s.dir, name)
	if err := os.WriteFile(token, []byte(made.Token), 0o600); err != nil {
		s.t.Fatal(err)
	}
	there := &serviceTest{t: s.t, node: node, dir: dir}
	join := there.command("agent", "join", "https://"+at+":8420", "--host", name, "--token-file", token, "--pin", s.pin, "--dir", dir)
	if out, err := join.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: join: %v %s", name, err, out)
	}
	return there.start("agent", "--dir", dir, "--socket", filepath.Join(s.dir, name+".sock"))
}

// carried returns the bytes that the only device of a host sent and received.
func (m *meshLab) carried(host string) (bytes float64) {
	m.t.Helper()
	dev, err := m.lab.Node(host).Device("router")
	if err != nil {
		m.t.Fatal(err)
	}
	var links []struct {
		Stats64 struct{ Rx, Tx struct{ Bytes float64 } }
	}
	if err := json.Unmarshal([]byte(labtest.Run(m.t, m.lab.Node(host), "ip", "-j", "-s", "link", "show", "dev", dev)), &links); err != nil || len(links) != 1 {
		m.t.Fatalf("%v: %+v", err, links)
	}
	return links[0].Stats64.Rx.Bytes + links[0].Stats64.Tx.Bytes
}

// schedule sets the probe schedule.
func (s *serviceTest) schedule(text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "schedule.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.checkOutput(0, "probe schedule: ", "probe", "schedule", "set", "-f", file)
}

func (s *serviceTest) probeState() (state api.ProbingState) {
	s.t.Helper()
	if err := json.Unmarshal(s.must("GET", "/v1/probe-state", ""), &state); err != nil {
		s.t.Fatal(err)
	}
	return state
}

// probeResult is what "headgate probe results -o json" prints, as far as the tests read it.
type probeResult struct {
	From   string       `json:"from"`
	To     string       `json:"to"`
	Answer *path.Answer `json:"answer"`
	Error  string       `json:"error"`
}

// found returns the newest results.
func (s *serviceTest) found(args ...string) (all []probeResult) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.checkOutput(0, "", append([]string{"probe", "results", "-o", "json"}, args...)...)), &all); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// Agents measure the paths between their hosts by a schedule, over limited links, within 1 %: not in
// quiet hours, and never two measurements through one host. The bytes charged to the budget are those
// that the devices carried. The service proposes limits from the results. A measurement stops when its
// agent or the controller is killed.
func TestProbeSchedule(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		m := newMeshLab(t)
		at := m.addresses["d"]
		s := serve(t, m.lab.Node("d"), t.TempDir(), "--listen", "0.0.0.0", "--certificate-for", at)
		s.credentials()
		agents := map[string]*lab.Cmd{}
		for _, name := range []string{"a", "b", "c"} {
			agents[name] = s.join(name, m.lab.Node(name), at)
		}
		const measured = "hosts: [{host: a}, {host: b}, {host: c}]\nmeasures: [{measure: tokenrate, every: 6h}]\nbytes: 4MB\ntime: 10s\nbudget: 100MB\n"
		now := time.Now().UTC()
		s.schedule(measured + fmt.Sprintf("quiet: [{from: %q, to: %q}]\n", now.Add(-2*time.Minute).Format("15:04"), now.Add(time.Hour).Format("15:04")))
		s.checkOutput(1, "no probe results yet", "probe", "results")
		time.Sleep(2 * time.Second)
		if state := s.probeState(); len(state.Running) > 0 || len(state.Spent) > 0 || state.Quiet == nil || !*state.Quiet {
			t.Errorf("the state in quiet hours is %+v", state)
		}
		s.checkOutput(0, "nothing: quiet hours", "probe", "schedule", "show")

		before := m.carried("a")
		s.schedule(measured)
		var all []probeResult
		for end := time.Now().Add(60 * time.Second); len(all) < 6; time.Sleep(time.Second) { // each look is a process beside the measurements
			if all = s.found("--all"); time.Now().After(end) {
				t.Fatalf("not all paths are measured after 60 s: %+v: %s", s.found(), s.notes.String())
			}
			if state := s.probeState(); len(state.Running) > 1 { // of three hosts
				t.Errorf("measurements in parallel: %+v", state.Running)
			}
		}
		want := map[string]float64{"a": 60e6, "b": 80e6, "c": 100e6}
		for _, r := range all {
			if r.Answer == nil || r.Answer.TokenRate == nil || r.Error != "" {
				t.Fatalf("%s to %s: %s", r.From, r.To, r.Error)
			}
			if off := r.Answer.TokenRate.Rate.Value/want[r.From] - 1; math.Abs(off) > 0.01 || !r.Answer.TokenRate.Rate.Known() {
				t.Errorf("%s to %s: %s, want %s", r.From, r.To, r.Answer.TokenRate.Rate.Format(probe.FormatRate), probe.FormatRate(want[r.From]))
			}
		}
		s.checkOutput(0, "token rate", "probe", "results", "--from", "a", "--to", "b")
		spent := s.spent("a")
		if carried := m.carried("a") - before; spent < 0.95*carried-100_000 || spent > 1.05*carried {
			t.Errorf("%.0f bytes are charged to a, and its device carried %.0f", spent, carried)
		}
		var proposed api.ProposalList
		if err := json.Unmarshal(s.must("GET", "/v1/hosts/a/proposals", ""), &proposed); err != nil || len(proposed.Items) != 1 || proposed.Items[0].Out == nil || proposed.Items[0].Out.LimitBps == nil {
			t.Errorf("%v: %+v", err, proposed)
			return // the proposals depend on the measurements, which labtest.Try repeats
		}
		if limit := unit.Rate(*proposed.Items[0].Out.LimitBps); limit < 58_500_000 || limit > 59_500_000 {
			t.Errorf("the proposed limit is %v", limit)
		}

		dev := proposed.Items[0].Dev
		s.checkOutput(0, "  limit: 59", "tune", dev, "--server", "default", "--host", "a")
		s.checkOutput(1, "no measurements through lo", "tune", "lo", "--server", "default", "--host", "a")
		s.checkOutput(2, "--peer cannot be used with --server", "tune", dev, "--peer", "b", "--server", "default", "--host", "a")

		s.schedule(strings.Replace(measured, "tokenrate", "path", 1) + "pairs: [[a, b]]\n")
		s.eventually("the measurement runs", func() bool { return m.carried("a") > before+spent+500_000 })
		agents["a"].Process.Signal(syscall.SIGKILL)
		agents["a"].Wait()
		s.eventually("the measurement ends", func() bool { return len(s.probeState().Running) == 0 })
		still := m.carried("a")
		time.Sleep(500 * time.Millisecond)
		if sends := m.carried("a") - still; sends > 20_000 {
			t.Errorf("%.0f bytes are sent without an agent", sends)
		}
		if now := s.spent("a"); now < spent+9_000_000 {
			t.Errorf("%.0f bytes are charged for a measurement without a report", now-spent)
		}
		for _, r := range s.found("--measure", "path") {
			if r.Answer != nil || !strings.Contains(r.Error, "the agent of a disconnected") {
				t.Errorf("the result from %s to %s is %+v", r.From, r.To, r)
			}
		}

		before = m.carried("c")
		s.schedule(strings.Replace(measured, "tokenrate", "path", 1) + "pairs: [[b, c]]\n")
		s.eventually("the second measurement runs", func() bool { return m.carried("c") > before+500_000 })
		s.controller.Process.Signal(syscall.SIGKILL)
		s.controller.Wait()
		time.Sleep(500 * time.Millisecond)
		still = m.carried("c")
		s.controller = s.start("controller", "--data", filepath.Join(s.dir, "controller"), "--listen", "0.0.0.0", "--certificate-for", at)
		s.eventually("the controller is back", func() bool {
			out, code := s.run("probe", "schedule", "show")
			return code == 0 && !strings.Contains(out, "path from b to c")
		})
		if sends := m.carried("c") - still; sends > 200_000 { // the agent reconnects
			t.Errorf("%.0f bytes are sent without a controller", sends)
		}
		if all := s.found("--all", "--from", "b", "--to", "c", "--measure", "path"); len(all) > 0 {
			t.Errorf("results are %+v", all)
		}
		for _, r := range s.found("--measure", "path", "--from", "b") {
			if r.To == "c" && (r.Answer != nil || !strings.Contains(r.Error, "disconnected during the measurement")) {
				t.Errorf("the result from %s to %s is %+v", r.From, r.To, r)
			}
		}
		s.checkOutput(0, "deleted", "probe", "schedule", "remove")
		s.checkOutput(1, "no probe schedule is set", "probe", "schedule", "show")
	})
}

// spent returns the bytes that measurements sent through a host today.
func (s *serviceTest) spent(host string) float64 {
	s.t.Helper()
	for _, h := range s.probeState().Spent {
		if h.Host == host {
			return float64(h.UsedBytes)
		}
	}
	return 0
}
