package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// localCommand runs a command on the host, in its namespace.
func (s *serviceTest) localCommand(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("headgate %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// eventually waits until ok returns true, for at most 20 s: Open vSwitch tries again 8 s after a refused connection.
func (s *serviceTest) eventually(what string, ok func() bool) {
	s.t.Helper()
	s.within(20*time.Second, what, ok)
}

// within waits until ok returns true, for at most a time.
func (s *serviceTest) within(most time.Duration, what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(most); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s: %s", most, what, s.notes.String())
		}
	}
}

// kill kills the agent.
func (s *serviceTest) kill() {
	s.agent.Process.Signal(syscall.SIGKILL)
	s.agent.Wait()
}

func (s *serviceTest) startAgent() {
	s.agent = s.start("agent", "--dir", filepath.Join(s.dir, "agent"))
}

// The agent is killed and restarted, sometimes during a change, while 20 Mbit/s pass through its
// groups: no packet is lost and no counter decreases. A connection that the service unassigned in the
// meantime is unassigned after the restart. A connection that was assigned on the host stays assigned.
func TestServiceAgentKilled(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, node, t.TempDir())
		in := "/v1/hosts/h1/interfaces/" + dev
		s.must("PUT", in, `{"out": {"limit": "200Mbit", "groups": [
			{"name": "media", "guarantee": "25%", "match": [{"dport": ["5001"]}]},
			{"name": "other", "guarantee": "25%"},
			{"name": "rest", "default": true}]}}`)
		s.eventually("the groups are in force", func() bool { return strings.Contains(s.localCommand("show", "groups"), "media") })
		// carried returns the packet counter of media.
		carried := func() uint64 {
			t.Helper()
			var states []shaper.State
			if err := json.Unmarshal([]byte(s.localCommand("show", "groups", "--dev", dev, "-o", "json")), &states); err != nil || len(states) != 1 {
				t.Fatalf("%v: %+v", err, states)
			}
			return states[0].Out.Groups[0].Packets
		}
		flow := traffic.Flow{Name: "media", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(20 * unit.Mbit)}
		f, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{flow}, traffic.Options{Duration: 2 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Stop()
		const a, b, c, d = "tcp 10.9.0.1:443 10.9.0.2:55001", "tcp [fd00::1]:443 [fd00::2]:55002", "tcp 10.9.0.1:443 10.9.0.2:55003", "tcp 10.9.0.1:443 10.9.0.2:55004"
		at := func(conn string) string { return in + "/connections/" + strings.ReplaceAll(conn, " ", "%20") }
		are := func(yes ...string) func() bool {
			return func() bool {
				t.Helper()
				said := s.localCommand("show", "assignments", "--dev", dev)
				for _, conn := range yes {
					if !strings.Contains(said, conn[len(conn)-6:]) { // the ends may be in the other order
						return false
					}
				}
				return strings.Count(said, "tcp ") == len(yes)
			}
		}
		s.must("PUT", at(a), `{"group": "other"}`)
		s.must("PUT", at(b), `{"group": "other"}`)
		s.eventually("both connections are assigned", are(a, b))
		s.localCommand("assign", "other", "--dev", dev, "--conn", c)
		before := carried()
		s.kill()
		s.must("DELETE", at(a), "")
		s.must("PUT", at(d), `{"group": "other"}`)
		s.startAgent()
		s.eventually("the deleted assignment is gone, the local one stays", are(b, c, d))
		for _, rest := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond} {
			s.must("PATCH", in+"/out/groups/other", `{"guarantee": "30%"}`)
			s.must("DELETE", at(d), "")
			time.Sleep(rest)
			s.kill()
			s.startAgent()
			s.eventually("the last connection is unassigned", are(b, c))
			s.must("PATCH", in+"/out/groups/other", `{"guarantee": "25%"}`)
			s.must("PUT", at(d), `{"group": "other"}`)
			s.eventually("the last connection is assigned", are(b, c, d))
			if now := carried(); now <= before {
				t.Errorf("the packet counter was %d before, and %d after", before, now)
			} else {
				before = now
			}
		}
		// Stop waits until all queued packets have arrived.
		f.Stop()
		total := f.Wait().Flows[0].Total
		if total.LostDatagrams > 0 || total.Datagrams < 1000 {
			t.Errorf("%d of %d packets were lost", total.LostDatagrams, total.Datagrams)
		}
		s.must("DELETE", in, "")
		s.eventually("no qdisc is left", func() bool { return !strings.Contains(labtest.Run(t, node, "tc", "qdisc", "show", "dev", dev), "htb") })
	})
}
