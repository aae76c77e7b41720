package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// transferTest is a service whose tenant shop has a group for transfers, and a busy group:
//
//	server (controller, agent, the tenant's programs) ── router ── client
//
// Other traffic also uses the link of 40 Mbit/s. The transfers' group has a guarantee of 2 Mbit/s of the
// shop's 30, of which 8 are unallocated.
type transferTest struct {
	*serviceTest
	in, dev string
	to      map[string]string // addresses of sinks on the client, by IP version
	args    []string          // common arguments of the example programs
}

const nobody = "65534"

func tenantsOf(t *labtest.Check) *transferTest {
	t.Helper()
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
	node := l.Node("server")
	dev, err := node.Device("router")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &transferTest{serviceTest: serve(t, node, dir), in: "/v1/hosts/h1/interfaces/" + dev, dev: dev, to: map[string]string{}}
	s.must("PUT", "/v1/tenants/shop", `{}`)
	s.must("PUT", s.in, `{"out": {"limit": "40Mbit", "groups": [
		{"name": "shop", "guarantee": "30Mbit", "tenant": "shop", "match": [{"dport": ["5002"]}], "groups": [
			{"name": "backup", "guarantee": "2Mbit", "join": ["`+nobody+`"]},
			{"name": "web", "guarantee": "20Mbit", "match": [{"dport": ["5002"]}]}]},
		{"name": "rest", "guarantee": "10Mbit", "default": true}]}}`)
	var made struct{ Token string }
	if err := json.Unmarshal(s.must("POST", "/v1/tokens", `{"name": "transfer", "role": "tenant", "tenant": "shop"}`), &made); err != nil {
		t.Fatal(err)
	}
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "shop.token")
	if err := os.WriteFile(token, []byte(made.Token+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	login := s.command("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", token, "--ca-file", ca)
	login.Env = append(login.Env, "XDG_CONFIG_HOME="+dir)
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("login: %v %s", err, out)
	}
	// The programs run as another user, who needs access to the folder.
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.args = []string{"--group", "shop/backup", "--socket", s.socket(), "--service", "https://127.0.0.1:8420", "--ca", ca, "--token-file", token, "--host", "h1", "--dev", dev}
	for _, ipv6 := range []bool{false, true} {
		s.sink(l.Node("client"), ipv6)
	}
	flow := func(name string, port uint16) traffic.Flow {
		return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)}
	}
	f, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{flow("rest", 5001), flow("web", 5002)}, traffic.Options{Duration: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Stop(); f.Wait() })
	s.until("the groups are in force", &s.notes, func(rate float64) bool { return rate > 0 })
	return s
}

// sink listens on a port of the client and discards what it receives.
func (s *transferTest) sink(client *lab.Node, ipv6 bool) {
	s.t.Helper()
	a, err := client.Addr(ipv6)
	if err != nil {
		s.t.Fatal(err)
	}
	var l net.Listener
	if err := client.Do(func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(a.String(), "0")); return err }); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	family := "IPv4"
	if ipv6 {
		family = "IPv6"
	}
	s.to[family] = l.Addr().String()
}

// kernelRate returns the guarantee of the transfers' group in the kernel, in Mbit/s, or 0 without the group.
func (s *transferTest) kernelRate() float64 {
	s.t.Helper()
	class := ""
	err := s.node.Do(func() error {
		state, err := htb.New().Observe(s.dev)
		if err != nil || state.Out == nil {
			return err
		}
		for _, g := range state.Out.Groups {
			if g.Path == "shop/backup" {
				class = g.Class
			}
		}
		return nil
	})
	if err != nil || class == "" {
		return 0
	}
	lines := bufio.NewScanner(strings.NewReader(labtest.Run(s.t, s.node, "tc", "class", "show", "dev", s.dev)))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 || words[2] != class {
			continue
		}
		for i, w := range words[:len(words)-1] {
			if w == "rate" {
				number := strings.TrimRight(words[i+1], "KMGbit")
				rate, err := strconv.ParseFloat(number, 64)
				if err != nil {
					s.t.Fatal(err)
				}
				return rate * map[string]float64{"bit": 1e-6, "Kbit": 1e-3, "Mbit": 1, "Gbit": 1e3}[words[i+1][len(number):]]
			}
		}
	}
	return 0
}

// until waits until ok accepts the guarantee in the kernel.
func (s *transferTest) until(what string, said *syncBuffer, ok func(rate float64) bool) {
	s.t.Helper()
	rate := 0.0
	for range 400 {
		if rate = s.kernelRate(); ok(rate) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("%s: not within 20 s: the kernel guarantees %v Mbit/s\n%s\n%s", what, rate, said.String(), s.notes.String())
}

// isConfigured reports whether a rate is the group's configured guarantee.
func isConfigured(rate float64) bool { return rate > 1.8 && rate < 2.1 }

// transfer starts one of the programs.
func (s *transferTest) transfer(program []string, args ...string) (c *lab.Cmd, said *syncBuffer) {
	s.t.Helper()
	said = &syncBuffer{}
	as := []string{"--reuid", nobody, "--regid", nobody, "--clear-groups"}
	c = s.node.Command(s.t.Context(), "setpriv", append(append(as, program...), args...)...)
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	return c, said
}

// exitedWithError reports whether a process exited with a code other than 0, and not by a signal.
func exitedWithError(err error) bool {
	e := new(exec.ExitError)
	return errors.As(err, &e) && e.ExitCode() > 0
}

// The example programs of a tenant request a larger guarantee when they are late, and so meet a deadline
// that they would miss. The kernel has the larger guarantee meanwhile, and the former one after the
// programs end, either finished or interrupted.
func TestTenantPrograms(t *testing.T) {
	t.Parallel() // 4 Mbit/s, and mostly waiting
	labtest.NeedRoot(t)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	binary, script := filepath.Join(dir, "transfer"), filepath.Join(dir, "transfer.py")
	if out, err := exec.Command("go", "build", "-C", "../examples/tenant/go", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	text, err := os.ReadFile("../examples/tenant/python/transfer.py")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, text, 0o644); err != nil {
		t.Fatal(err)
	}
	golang, python := []string{binary}, []string{"/usr/bin/python3", script}
	labtest.Try(t, func(t *labtest.Check) {
		s := tenantsOf(t)
		// At 2.7 Mbit/s, the group's rate when all groups are busy, 4.4 MB take 13 s.
		const size = "4400000"
		within := func(program []string, seconds string) string {
			if len(program) == 1 {
				return seconds + "s"
			}
			return seconds
		}
		alone := append([]string{"--to", s.to["IPv4"], "--size", size, "--within", within(python, "10")}, s.args[:4]...)
		c, said := s.transfer(python, alone...)
		if err := c.Wait(); !exitedWithError(err) || !strings.Contains(said.String(), "the time is over") {
			t.Errorf("without a larger guarantee: %v\n%s", err, said.String())
		}
		for _, p := range []struct {
			name, family string
			program      []string
		}{{"go", "IPv6", golang}, {"python", "IPv4", python}} {
			if rate := s.kernelRate(); !isConfigured(rate) {
				t.Errorf("%s: at the start, the kernel guarantees %v Mbit/s", p.name, rate)
			}
			args := append([]string{"--to", s.to[p.family]}, s.args...)
			c, said := s.transfer(p.program, append(args, "--size", size, "--within", within(p.program, "10"))...)
			most, stop := s.most()
			err := c.Wait()
			stop()
			if err != nil || !strings.Contains(said.String(), size+" bytes arrived in") || !strings.Contains(said.String(), "released") {
				t.Errorf("%s: %v\n%s", p.name, err, said.String())
			}
			if *most < 4 {
				t.Errorf("%s: the largest guarantee in the kernel was %v Mbit/s\n%s", p.name, *most, said.String())
			}
			s.until(p.name+": restores the guarantee at the end", said, isConfigured)

			// The program cannot meet the deadline, and gets the unallocated rate. It requests the rate at
			// half of its time, and again if a response took 5 s, as on a busy disk.
			c, said = s.transfer(p.program, append(args, "--size", "40000000", "--within", within(p.program, "14"))...)
			s.until(p.name+": has the unallocated rate", said, func(rate float64) bool { return rate > 9.5 && rate < 10.1 })
			c.Process.Signal(syscall.SIGTERM)
			if err := c.Wait(); !exitedWithError(err) || !strings.Contains(said.String(), "refused: ") || !strings.Contains(said.String(), "told to stop") {
				t.Errorf("%s, interrupted: %v\n%s", p.name, err, said.String())
			}
			s.until(p.name+": restores the guarantee when interrupted", said, isConfigured)
		}
	})
}

// most records the largest guarantee in the kernel until stop is called.
func (s *transferTest) most() (most *float64, stop func()) {
	most = new(float64)
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			*most = max(*most, s.kernelRate())
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return most, func() { close(ended); wait.Wait() }
}
