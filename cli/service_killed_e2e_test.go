package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/unit"
)

// here runs a command on the host itself, in its namespace.
func (s *serving) here(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("headgate %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// eventually waits until something is so.
func (s *serving) eventually(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within 10 s: %s: %s", what, s.notes.String())
		}
	}
}

// kill kills the agent.
func (s *serving) kill() {
	s.agent.Process.Signal(syscall.SIGKILL)
	s.agent.Wait()
}

func (s *serving) startAgent() {
	s.agent = s.start("agent", "--dir", filepath.Join(s.dir, "agent"))
}

// The agent is killed and started again, some times in the middle of a change, while 20 Mbit/s pass
// through its groups: no packet is lost and no counter goes back. A connection that was taken out
// of its group meanwhile is out of it when the agent is back, one that was put in a group by hand
// stays there.
func TestServiceKilled(t *testing.T) {
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
		s.eventually("the groups are there", func() bool { return strings.Contains(s.here("show", "groups"), "media") })
		// carried is what media has carried.
		carried := func() uint64 {
			t.Helper()
			var states []shaper.State
			if err := json.Unmarshal([]byte(s.here("show", "groups", "--dev", dev, "-o", "json")), &states); err != nil || len(states) != 1 {
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
				said := s.here("show", "assignments", "--dev", dev)
				for _, conn := range yes {
					if !strings.Contains(said, conn[len(conn)-6:]) { // it may be told from its other end
						return false
					}
				}
				return strings.Count(said, "tcp ") == len(yes)
			}
		}
		s.must("PUT", at(a), `{"group": "other"}`)
		s.must("PUT", at(b), `{"group": "other"}`)
		s.eventually("both are in a group", are(a, b))
		s.here("assign", "other", "--dev", dev, "--conn", c)
		before := carried()
		s.kill()
		s.must("DELETE", at(a), "")
		s.must("PUT", at(d), `{"group": "other"}`)
		s.startAgent()
		s.eventually("what was removed is out, what is by hand stays", are(b, c, d))
		for _, rest := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond} {
			s.must("PATCH", in+"/out/groups/other", `{"guarantee": "30%"}`)
			s.must("DELETE", at(d), "")
			time.Sleep(rest)
			s.kill()
			s.startAgent()
			s.eventually("the last is out", are(b, c))
			s.must("PATCH", in+"/out/groups/other", `{"guarantee": "25%"}`)
			s.must("PUT", at(d), `{"group": "other"}`)
			s.eventually("the last is in", are(b, c, d))
			if now := carried(); now <= before {
				t.Errorf("%d packets were carried before, and %d after", before, now)
			} else {
				before = now
			}
		}
		// Its end, with all that was queued.
		f.Stop()
		total := f.Wait().Flows[0].Total
		if total.LostDatagrams > 0 || total.Datagrams < 1000 {
			t.Errorf("%d of %d packets were lost", total.LostDatagrams, total.Datagrams)
		}
		s.must("DELETE", in, "")
		s.eventually("nothing is left", func() bool { return !strings.Contains(labtest.Run(t, node, "tc", "qdisc", "show", "dev", dev), "htb") })
	})
}
