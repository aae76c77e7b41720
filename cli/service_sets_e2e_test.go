package cli

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

	"headgate/collective/host"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// sets waits until the service says of h1's sets what it should.
func (s *serving) sets(most time.Duration, what string, ok func([]host.State) bool) []host.State {
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

// two tells that db has both connections.
func two(states []host.State) bool {
	return len(states) == 1 && states[0].Set == "db" && len(states[0].Connections) == 2
}

// Two connections of 4.8 and 2.4 Mbit/s are a set that a file gives the service, and UDP leaves
// them 4 of 10 Mbit/s, as in TestCollectiveRun:
//
//	server (controller, agent) ── router ──10 Mbit/s, 20 ms── client
//
// They are controlled at 2 to 1, as the service says; the agent is killed and started again, and
// has the set again; without the document nothing is left.
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
		s.login()
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
		s.says(0, "add    set db", there("plan", "-f", file)...)
		s.says(0, "add    set db", there("apply", "-f", file)...)
		s.says(0, "set db: up to date", there("apply", "-f", file)...)
		s.sets(10*time.Second, "the set has both", two)
		time.Sleep(8 * time.Second)
		udp := traffic.Flow{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(6 * unit.Mbit)}
		disturb, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{udp}, traffic.Options{Duration: 18 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		controlled := func(states []host.State) bool { return two(states) && states[0].Controlling }
		s.sets(8*time.Second, "it is controlled", controlled)
		time.Sleep(4 * time.Second)
		begin := s.sets(time.Second, "it is controlled still", controlled)[0]
		time.Sleep(7 * time.Second)
		end := s.sets(time.Second, "it is controlled to the end", controlled)[0]
		a0, b0 := acked(begin)
		a1, b1 := acked(end)
		t.Logf("ratio %.2f; %+v", (a1-a0)/(b1-b0), end)
		if ratio := (a1 - a0) / (b1 - b0); ratio < 1.7 || ratio > 2.3 {
			t.Errorf("the ratio is %.2f, want 2", ratio)
		}
		s.says(0, "controlled", there("collective", "show")...)
		s.says(0, "controlled", there("collective", "top", "--once")...)
		s.says(0, "controlled", "collective", "show", "--instance", "service")
		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.sets(5*time.Second, "nobody tells", func(states []host.State) bool {
			return len(states) == 1 && strings.Contains(states[0].Trouble, "not connected")
		})
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		s.sets(10*time.Second, "the set has both again", two)
		disturb.Wait()
		s.says(0, "set db: cleared", there("collective", "clear", "db")...)
		s.sets(10*time.Second, "no set is there", func(states []host.State) bool { return len(states) == 0 })
		nothingLeft(t, "service")
	})
}

// A set that this host cannot run says so, and one that a program of the host runs stays with that
// until it ends; others are not disturbed, and weights change while they run. What is taken away
// while the agent is not there is gone when it comes back, and it needs no controller for the rest.
func TestServiceSetsTrouble(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		dir, cgroup := t.TempDir(), filepath.Base(labtest.Cgroup(t))
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		s := serve(t, l.Node("server"), dir)
		s.login()
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
				return m.Trouble == "" && len(m.Connections) == 1 && m.Connections[0].Weight == w
			}
		}
		s.sets(10*time.Second, "it has the connection", weight(1))
		put("mine", fmt.Sprintf(mine, 3))
		s.sets(10*time.Second, "it has the other weight", weight(3))

		put("nobody", "join: [headgate-no-such]\n")
		s.sets(10*time.Second, "a user that is not there is told of", func(states []host.State) bool {
			return strings.Contains(of(states, "nobody").Trouble, "nobody joins as headgate-no-such")
		})
		s.says(0, "nobody joins as headgate-no-such", there("collective", "show")...)
		if told := string(s.must("GET", "/v1/hosts/h1", "")); !strings.Contains(told, "nobody joins") {
			t.Errorf("the host is %s", told)
		}

		put("asked", "join: [root]\n")
		s.sets(10*time.Second, "a set of the name asked runs", func(states []host.State) bool { return of(states, "asked").Since > 0 })
		local := startCollective(t, joinFile(t), "--instance", "local-test")
		s.sets(20*time.Second, "it is left to the program of the host", func(states []host.State) bool {
			return strings.Contains(of(states, "asked").Trouble, "the program local-test of this host runs a set of that name") && weight(3)(states)
		})
		if err := local.end(syscall.SIGTERM); err != nil {
			t.Errorf("it does not end well: %v", err)
		}
		s.sets(20*time.Second, "it is the service's again", func(states []host.State) bool {
			asked := of(states, "asked")
			return asked.Trouble == "" && asked.Since > 0
		})

		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.must("DELETE", "/v1/hosts/h1/collectives/nobody", "")
		s.must("DELETE", "/v1/hosts/h1/collectives/asked", "")
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		s.sets(10*time.Second, "the rest is there again", func(states []host.State) bool { return len(states) == 1 && weight(3)(states) })
		s.controller.Process.Signal(syscall.SIGKILL)
		s.controller.Wait()
		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"))
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			c.Write([]byte("hello"))
			states, err := host.Ask("service")
			if err == nil && weight(3)(states) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("without a controller it has %+v, %v", states, err)
			}
		}
		// Ended well, it leaves what is attached to the next agent.
		s.agent.Process.Signal(syscall.SIGTERM)
		s.agent.Wait()
		if found, idle, err := host.Clear("service"); err != nil || !found || idle > 0 {
			t.Errorf("after its end there is %v, %d, %v", found, idle, err)
		}
	})
}
