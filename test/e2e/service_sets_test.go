package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// waitSets waits until ok accepts the service's state of h1's connection sets.
func (s *serviceTest) waitSets(most time.Duration, what string, ok func([]host.State) bool) []host.State {
	s.t.Helper()
	var got struct{ Items []host.State }
	var text []byte
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		text = s.must("GET", "/v1/hosts/h1/collective-states", "")
		got.Items = nil
		if err := json.Unmarshal(text, &got); err != nil {
			s.t.Fatal(err)
		}
		if ok(got.Items) {
			return got.Items
		}
	}
	s.t.Fatalf("not within %v: %s: %s: %s", most, what, text, s.notes.String())
	return nil
}

// hasBothConnections reports whether set db has both connections.
func hasBothConnections(states []host.State) bool {
	return len(states) == 1 && states[0].Set == "db" && len(states[0].Connections) == 2
}

// Two connections of 4.8 and 2.4 Mbit/s are a connection set that is applied at the service, and UDP
// leaves them 4 of 10 Mbit/s, as in TestCollectiveRun:
//
//	server (controller, agent) ── router ──10 Mbit/s, 20 ms── client
//
// The agent controls them at a ratio of 2 to 1, and the service reports it. After a kill and restart the
// agent has the set again. After clear, nothing of the set is left.
func TestServiceSets(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		dir, cgroup := t.TempDir(), filepath.Base(labtest.Cgroup(t))
		file := filepath.Join(dir, "sets.yaml")
		text := fmt.Sprintf("kind: Collective\nname: db\ncgroup: /%s\nmatch: [{dport: 5001}, {dport: 5002}]\n", cgroup)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: 10 * unit.Mbit, RTT: 20 * time.Millisecond})
		s := serve(t, l.Node("server"), dir)
		s.credentials()
		there := func(args ...string) []string { return append(args, "--server", "default", "--host", "h1") }
		db := func(name string, port uint16, rate unit.Rate) traffic.Flow {
			return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, Congestion: "cubic", Schedule: traffic.Constant(rate)}
		}
		flows := []traffic.Flow{db("db1", 5001, 4_800*unit.Kbit), db("db2", 5002, 2_400*unit.Kbit)}
		f, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: 90 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.Stop(); f.Wait() }()
		s.checkOutput(0, "add    set db", there("plan", "-f", file)...)
		s.checkOutput(0, "add    set db", there("apply", "-f", file)...)
		s.checkOutput(0, "set db: up to date", there("apply", "-f", file)...)
		s.waitSets(10*time.Second, "the set has both", hasBothConnections)
		time.Sleep(8 * time.Second)
		udp := traffic.Flow{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(6 * unit.Mbit)}
		disturb, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{udp}, traffic.Options{Duration: 18 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		controlled := func(states []host.State) bool { return hasBothConnections(states) && states[0].Controlling }
		s.waitSets(8*time.Second, "the set is controlled", controlled)
		time.Sleep(4 * time.Second)
		begin := s.waitSets(time.Second, "the set is still controlled", controlled)[0]
		time.Sleep(7 * time.Second)
		end := s.waitSets(time.Second, "the set is controlled until the end", controlled)[0]
		a0, b0 := acked(begin)
		a1, b1 := acked(end)
		t.Logf("ratio %.2f; %+v", (a1-a0)/(b1-b0), end)
		if ratio := (a1 - a0) / (b1 - b0); ratio < 1.7 || ratio > 2.3 {
			t.Errorf("the ratio is %.2f, want 2", ratio)
		}
		s.checkOutput(0, "controlled", there("collective", "show")...)
		s.checkOutput(0, "controlled", there("collective", "top", "--once")...)
		s.checkOutput(0, "controlled", "collective", "show", "--instance", "service")
		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.waitSets(5*time.Second, "the agent is disconnected", func(states []host.State) bool {
			return len(states) == 1 && strings.Contains(states[0].Error, "not connected")
		})
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		s.waitSets(10*time.Second, "the set has both again", hasBothConnections)
		disturb.Wait()
		s.checkOutput(0, "set db: cleared", there("collective", "clear", "db")...)
		s.waitSets(10*time.Second, "the set is removed", func(states []host.State) bool { return len(states) == 0 })
		nothingLeft(t, "service")
	})
}

// A set that the host cannot run has a problem. A set that a local program runs stays with the program
// until the program exits. Other sets are not disturbed, and weights change at run time. Sets that are
// deleted while the agent is down are gone after its restart. The agent runs the other sets without a
// controller.
func TestServiceSetsProblems(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		dir, cgroup := t.TempDir(), filepath.Base(labtest.Cgroup(t))
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		s := serve(t, l.Node("server"), dir)
		s.credentials()
		there := func(args ...string) []string { return append(args, "--server", "default", "--host", "h1") }
		put := func(name, text string) {
			t.Helper()
			doc, err := json.Marshal(map[string]string{"document": fmt.Sprintf("kind: Collective\nname: %s\n%s", name, text)})
			if err != nil {
				t.Fatal(err)
			}
			s.must("PUT", "/v1/hosts/h1/collectives/"+name, string(doc))
		}
		of := func(states []host.State, name string) (out host.State) {
			for _, s := range states {
				if s.Set == name {
					return s
				}
			}
			return out
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		mine := fmt.Sprintf("cgroup: /%s\nmatch: [{dport: %d, weight: %%d}]\n", cgroup, port)
		put("mine", fmt.Sprintf(mine, 1))
		weight := func(w float64) func([]host.State) bool {
			return func(states []host.State) bool {
				c.Write([]byte("hello"))
				m := of(states, "mine")
				return m.Error == "" && len(m.Connections) == 1 && m.Connections[0].Weight == w
			}
		}
		s.waitSets(10*time.Second, "the set has the connection", weight(1))
		put("mine", fmt.Sprintf(mine, 3))
		s.waitSets(10*time.Second, "the set has the new weight", weight(3))

		put("nobody", "join: [headgate-no-such]\n")
		s.waitSets(10*time.Second, "the problem names the unknown user", func(states []host.State) bool {
			return strings.Contains(of(states, "nobody").Error, "cannot resolve user headgate-no-such")
		})
		s.checkOutput(0, "cannot resolve user headgate-no-such", there("collective", "show")...)
		if told := string(s.must("GET", "/v1/hosts/h1", "")); !strings.Contains(told, "cannot resolve user") {
			t.Errorf("the host is %s", told)
		}

		put("asked", "join: [root]\n")
		s.waitSets(10*time.Second, "set asked runs", func(states []host.State) bool { return of(states, "asked").Since > 0 })
		local := startCollective(t, joinFile(t), "--instance", "local-test")
		s.waitSets(20*time.Second, "the local program has the set", func(states []host.State) bool {
			return strings.Contains(of(states, "asked").Error, "program local-test on this host already runs a set of this name") && weight(3)(states)
		})
		if err := local.end(syscall.SIGTERM); err != nil {
			t.Errorf("the local program fails: %v", err)
		}
		s.waitSets(20*time.Second, "the agent has the set again", func(states []host.State) bool {
			asked := of(states, "asked")
			return asked.Error == "" && asked.Since > 0
		})

		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.must("DELETE", "/v1/hosts/h1/collectives/nobody", "")
		s.must("DELETE", "/v1/hosts/h1/collectives/asked", "")
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		s.waitSets(10*time.Second, "the other set runs again", func(states []host.State) bool { return len(states) == 1 && weight(3)(states) })
		s.controller.Process.Signal(syscall.SIGKILL)
		s.controller.Wait()
		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			c.Write([]byte("hello"))
			states, err := host.QueryStates("service")
			if err == nil && weight(3)(states) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("without a controller the agent has %+v, %v", states, err)
			}
		}
		// After a clean exit the programs stay attached for the next agent.
		s.agent.Process.Signal(syscall.SIGTERM)
		s.agent.Wait()
		if found, idle, err := host.Clear("service"); err != nil || !found || idle > 0 {
			t.Errorf("after the exit: %v, %d, %v", found, idle, err)
		}
	})
}
