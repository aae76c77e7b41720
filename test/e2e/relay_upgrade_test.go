package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/relay/host"
)

// relayTest is an entry and an exit that are upgraded while they carry connections. The entry has a forwarded port, and
// takes connections transparently.
//
//	client == entry == exit == server
type relayTest struct {
	testing.TB
	lab     *lab.Lab
	dir     string
	server  netip.AddrPort // returns what it gets, or the hash of it
	forward string
	metrics string
	seen    sync.Map // the addresses from which connections come to the server
	entry   *relayProcess
	exit    *relayProcess
}

// relayProcess is a process of an agent.
type relayProcess struct {
	t      *relayTest
	name   string
	pid    int
	notify *net.UnixConn // what the service manager receives
	ended  chan error    // nil for a process that another one has started
}

func newRelayTest(t testing.TB, entryFlags ...string) *relayTest {
	labtest.NeedRoot(t)
	l := labtest.Up(t, &lab.Topology{
		Name:  lab.UniqueName("relayup"),
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "entry", Router: true}, {Name: "exit", Router: true}, {Name: "server"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"client", "entry"}}, {Ends: [2]string{"entry", "exit"}}, {Ends: [2]string{"exit", "server"}}},
	})
	at := func(node string) netip.Addr {
		a, err := l.Node(node).Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	r := &relayTest{TB: t, lab: l, dir: t.TempDir(), server: netip.AddrPortFrom(at("server"), 7)}
	r.forward, r.metrics = netip.AddrPortFrom(at("entry"), 8007).String(), netip.AddrPortFrom(at("entry"), 9423).String()
	r.serve()
	key := filepath.Join(r.dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("6b", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("exit", fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\naccept: {listen: \"%s:8424\", destinations: [%s/32]}\n", r.name("exit"), key, at("exit"), r.server.Addr()))
	r.write("entry", fmt.Sprintf(`kind: Relay
name: %s
key: %s
exits: [{address: "%s:8424", destinations: [%s/32]}]
forward: [{listen: "%s", to: "%s"}]
take: [{dport: [7]}]
`, r.name("entry"), key, at("exit"), r.server.Addr(), r.forward, r.server))
	r.exit = r.start("exit")
	r.entry = r.start("entry", append(entryFlags, "--metrics", r.metrics)...)
	r.until("connections are taken", func() bool {
		return strings.Contains(labtest.Run(t, l.Node("entry"), "nft", "list", "ruleset"), "tproxy")
	})
	return r
}

func (r *relayTest) name(node string) string { return node + "-" + r.lab.Topology.Name }

func (r *relayTest) write(node, text string) {
	if err := os.WriteFile(filepath.Join(r.dir, node+".yaml"), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *relayTest) until(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("after 20 s it is not so that %s\n%s", what, read(filepath.Join(r.dir, "log")))
		}
	}
}

// serve runs the server: the first byte of a connection asks for the bytes that follow, or for their hash.
func (r *relayTest) serve() {
	var l net.Listener
	if err := r.lab.Node("server").Do(func() (err error) { l, err = net.Listen("tcp", r.server.String()); return err }); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			r.seen.Store(from, true)
			go func() {
				defer c.Close()
				kind := make([]byte, 1)
				if _, err := io.ReadFull(c, kind); err != nil {
					return
				}
				if kind[0] == 'e' {
					io.Copy(c, c)
					return
				}
				h := sha256.New()
				if _, err := io.Copy(h, c); err == nil {
					c.Write(h.Sum(nil))
				}
			}()
		}
	}()
}

// start starts an agent in a node.
func (r *relayTest) start(node string, args ...string) *relayProcess {
	r.Helper()
	socket := filepath.Join(r.TempDir(), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		r.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(r.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.Fatal(err)
	}
	defer log.Close()
	c := r.lab.Node(node).Command(context.Background(), os.Args[0], append([]string{"relay", "run", "-f", filepath.Join(r.dir, node+".yaml")}, args...)...)
	c.Env = append(os.Environ(), selfEnv+"=1", "NOTIFY_SOCKET="+socket)
	c.Stderr = log
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	p := &relayProcess{r, node, c.Process.Pid, notify, make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	r.Cleanup(func() {
		p.kill()
		notify.Close()
	})
	p.await("READY=1")
	return p
}

// await returns the value after prefix of the next message to the service manager that has a line with it.
func (p *relayProcess) await(prefix string) string {
	p.t.Helper()
	b := make([]byte, 4096)
	p.notify.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		n, err := p.notify.Read(b)
		if err != nil {
			p.t.Fatalf("%s: no %s: %v\n%s", p.name, prefix, err, read(filepath.Join(p.t.dir, "log")))
		}
		for line := range strings.Lines(string(b[:n])) {
			if after, is := strings.CutPrefix(strings.TrimSpace(line), prefix); is {
				return after
			}
		}
	}
}

func (p *relayProcess) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pid, s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// upgrade returns the process that has taken over.
func (p *relayProcess) upgrade() *relayProcess {
	p.t.Helper()
	p.signal(syscall.SIGHUP)
	p.await("RELOADING=1")
	next := *p
	next.ended = nil
	next.pid, _ = strconv.Atoi(p.await("MAINPID="))
	if next.pid == p.pid || next.pid == 0 {
		p.t.Fatalf("%s: the main process is %d after an upgrade of %d", p.name, next.pid, p.pid)
	}
	p.t.Cleanup(next.kill)
	p.await("STATUS=")
	return &next
}

// kill returns when the process has ended: the lab cannot be taken down before.
func (p *relayProcess) kill() {
	syscall.Kill(p.pid, syscall.SIGKILL)
	p.t.until("the "+p.name+" has ended", func() bool { return !p.alive() })
}

// alive tells whether a process has not ended.
func (p *relayProcess) alive() bool {
	stat := read(fmt.Sprintf("/proc/%d/stat", p.pid))
	return stat != "" && !strings.Contains(stat, ") Z ")
}

// read returns the content of a file, "" if it does not exist.
func read(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

// dial connects to the server from the client: transparently, or by the forwarded port.
func (r *relayTest) dial(to string) (c net.Conn, err error) {
	err = r.lab.Node("client").Do(func() (err error) { c, err = net.DialTimeout("tcp", to, 5*time.Second); return err })
	return c, err
}

// echo sends a few bytes, and gets them back.
func (r *relayTest) echo(to string) error {
	c, err := r.dial(to)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, "ehello")
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		return fmt.Errorf("read %q, %w", got, err)
	}
	return nil
}

// transfer is a connection on which bytes are sent until its end.
type transfer struct {
	to   string
	conn net.Conn
	sum  hash.Hash
	stop chan struct{}
	done chan error
}

func (r *relayTest) transfer(to string) *transfer {
	r.Helper()
	c, err := r.dial(to)
	if err != nil {
		r.Fatal(err)
	}
	x := &transfer{to, c, sha256.New(), make(chan struct{}), make(chan error, 1)}
	r.Cleanup(func() { c.Close() })
	go func() { x.done <- x.run() }()
	return x
}

func (x *transfer) run() error {
	if _, err := io.WriteString(x.conn, "h"); err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{})
	block := make([]byte, 32<<10)
	for {
		select {
		case <-x.stop:
			return x.conn.(*net.TCPConn).CloseWrite()
		case <-time.After(2 * time.Millisecond):
		}
		random.Read(block)
		x.sum.Write(block)
		if _, err := x.conn.Write(block); err != nil {
			return err
		}
	}
}

// end ends a transfer, and compares the hash of what has arrived.
func (x *transfer) end() error {
	close(x.stop)
	if err := <-x.done; err != nil {
		return fmt.Errorf("transfer to %s: %w", x.to, err)
	}
	x.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	got, err := io.ReadAll(x.conn)
	if err != nil || !bytes.Equal(got, x.sum.Sum(nil)) {
		return fmt.Errorf("transfer to %s: the hash is %x, %v, want %x", x.to, got, err, x.sum.Sum(nil))
	}
	return nil
}

// connects opens connections one after another until the end of the test or the call of stop, which returns how many.
func (r *relayTest) connects(to string) (stop func() int) {
	ctx, cancel := context.WithCancel(r.Context())
	r.Cleanup(cancel)
	var done sync.WaitGroup
	n := 0
	done.Go(func() {
		for ; ctx.Err() == nil; n++ {
			if err := r.echo(to); err != nil {
				r.Errorf("connection %d to %s: %v", n, to, err)
				return
			}
		}
	})
	return func() int { cancel(); done.Wait(); return n }
}

func (r *relayTest) status(node string) host.Status {
	r.Helper()
	s, err := host.QueryStatus(r.name(node))
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// Entry and exit are upgraded, the entry twice, while two transfers run and connections are opened all the time. No
// connection is refused, the transfers arrive as they were sent, and each former process ends after the last of its
// connections. A configuration with mistakes leaves the running process in service.
func TestRelayUpgrade(t *testing.T) {
	r := newRelayTest(t)
	transfers := []*transfer{r.transfer(r.forward), r.transfer(r.server.String())}
	r.until("the transfers are carried", func() bool { return r.status("exit").Total.Connections == 2 })
	first := r.entry
	former := []*relayProcess{r.entry, r.exit}
	stops := []func() int{r.connects(r.forward), r.connects(r.server.String())}
	r.entry = r.entry.upgrade()
	time.Sleep(500 * time.Millisecond)
	r.exit = r.exit.upgrade()
	time.Sleep(500 * time.Millisecond)
	transfers = append(transfers, r.transfer(r.forward))
	r.until("the new processes carry the third transfer", func() bool {
		return r.status("entry").Total.Connections > 0 && r.status("exit").Total.Connections > 0
	})
	former = append(former, r.entry)
	r.entry = r.entry.upgrade()
	time.Sleep(500 * time.Millisecond)
	for n, stop := range stops {
		if n, way := stop(), []string{"forwarded", "transparent"}[n]; n < 10 {
			t.Errorf("%d %s connections", n, way)
		} else {
			t.Logf("%d %s connections", n, way)
		}
	}
	for _, p := range append(former, r.entry, r.exit) {
		if !p.alive() {
			t.Errorf("a process of the %s has ended before its connections", p.name)
		}
	}
	n := 0
	r.seen.Range(func(from, _ any) bool { n++; return true })
	if n != 1 {
		t.Errorf("the server has seen connections from %d addresses, want those of the exit alone", n)
	}
	if began := r.status("entry").Began; time.Since(began) > 5*time.Second {
		t.Errorf("the status is of a process that began at %v", began)
	}
	if err := r.lab.Node("entry").Do(func() error {
		answer, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + r.metrics + "/metrics")
		if err == nil {
			answer.Body.Close()
		}
		return err
	}); err != nil {
		t.Errorf("metrics: %v", err)
	}
	for _, x := range transfers {
		if err := x.end(); err != nil {
			t.Error(err)
		}
	}
	for _, p := range former {
		r.until("the former process of the "+p.name+" has ended", func() bool { return !p.alive() })
	}
	if err := <-first.ended; err != nil {
		t.Errorf("the first process: %v", err)
	}

	config := read(filepath.Join(r.dir, "entry.yaml"))
	r.write("entry", "kind: Relay\nname: entry\nunknown: 1\n")
	r.entry.signal(syscall.SIGHUP)
	if status := r.entry.await("STATUS="); !strings.Contains(status, "failed") {
		t.Errorf("the status of an upgrade with a wrong configuration is %q", status)
	}
	for _, to := range []string{r.forward, r.server.String()} {
		if err := r.echo(to); err != nil {
			t.Errorf("after an upgrade that failed: %v", err)
		}
	}
	if log := read(filepath.Join(r.dir, "log")); !strings.Contains(log, "unknown") {
		t.Errorf("the log does not have the mistake:\n%s", log)
	}

	// Another configuration: what it does not have ends with the former process.
	other := strings.Replace(r.forward, "8007", "8008", 1)
	r.write("entry", strings.Replace(strings.Replace(config, r.forward, other, 1), "take:", "# take:", 1))
	r.entry = r.entry.upgrade()
	if err := r.echo(other); err != nil {
		t.Errorf("a new forwarded port: %v", err)
	}
	if err := r.echo(r.forward); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a former forwarded port: %v, want a refused connection", err)
	}
	if rules := labtest.Run(t, r.lab.Node("entry"), "nft", "list", "ruleset"); strings.Contains(rules, "headgate") {
		t.Errorf("connections are still taken: %s", rules)
	}
	r.write("entry", config)
	r.entry = r.entry.upgrade()
	r.entry.signal(syscall.SIGTERM)
	r.until("the entry has ended", func() bool { return !r.entry.alive() })
	if left := labtest.Run(t, r.lab.Node("entry"), "nft", "list", "ruleset") + labtest.Run(t, r.lab.Node("entry"), "ip", "rule"); strings.Contains(left, "headgate") || strings.Contains(left, "8424") {
		t.Errorf("%s is left", left)
	}
}

// A process that is killed, before or after it has taken over, leaves the other one in service.
func TestRelayUpgradeKilled(t *testing.T) {
	r := newRelayTest(t)
	works := func(when string) {
		t.Helper()
		r.until(when+" connections are taken", func() bool {
			s, err := host.QueryStatus(r.name("entry"))
			return err == nil && s.Total.Streams > 0 && strings.Contains(labtest.Run(t, r.lab.Node("entry"), "nft", "list", "ruleset"), "tproxy")
		})
		for _, to := range []string{r.forward, r.server.String()} {
			if err := r.echo(to); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		r.until(when+" the entry has carried two connections", func() bool { return r.status("entry").Total.Ended >= 2 })
	}
	transfers := []*transfer{r.transfer(r.server.String())}
	r.until("the transfer is carried", func() bool { return r.status("entry").Total.Connections == 1 })
	second := r.entry.upgrade()
	second.signal(syscall.SIGKILL)
	if pid := r.entry.await("MAINPID="); pid != strconv.Itoa(r.entry.pid) {
		t.Errorf("the main process is %s after the new one was killed, want %d", pid, r.entry.pid)
	}
	works("after the new entry was killed")
	if err := transfers[0].end(); err != nil {
		t.Errorf("after the new entry was killed: %v", err)
	}

	held := r.transfer(r.server.String())
	r.until("the transfer is carried", func() bool { return r.status("entry").Total.Connections == 1 })
	second = r.entry.upgrade()
	r.entry.signal(syscall.SIGKILL)
	works("after the former entry was killed")
	held.conn.Close()

	held = r.transfer(r.server.String())
	r.until("the transfer is carried", func() bool { return r.status("exit").Total.Connections >= 1 })
	next := r.exit.upgrade()
	next.signal(syscall.SIGKILL)
	r.exit.await("MAINPID=")
	works("after the new exit was killed")
	if err := held.end(); err != nil {
		t.Errorf("after the new exit was killed: %v", err)
	}
	r.entry = second
	r.exit.upgrade()
	works("after another upgrade of the exit")

	// While the new process starts.
	r.entry.signal(syscall.SIGHUP)
	r.until("a process is starting", func() bool {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.entry.pid))
		for _, file := range tasks {
			for _, pid := range strings.Fields(read(file)) {
				if strings.Contains(read("/proc/"+pid+"/cmdline"), "relay") {
					return true
				}
			}
		}
		return false
	})
	r.entry.signal(syscall.SIGKILL)
	r.entry.pid, _ = strconv.Atoi(r.entry.await("MAINPID="))
	t.Cleanup(r.entry.kill)
	works("after the former entry was killed before the new one was ready")
}

// A process that accepts again removes what its successor took connections with, and forgets what has drained.
func TestRelayResumes(t *testing.T) {
	r := newRelayTest(t)
	config := read(filepath.Join(r.dir, "entry.yaml"))
	r.write("entry", strings.Replace(config, "take:", "# take:", 1))
	without := r.entry.upgrade()
	held := r.transfer(r.forward)
	r.until("the transfer is carried", func() bool { return r.status("entry").Total.Connections == 1 })
	r.write("entry", config)
	with := without.upgrade()
	rules := func() string { return labtest.Run(t, r.lab.Node("entry"), "nft", "list", "ruleset") }
	r.until("connections are taken", func() bool { return strings.Contains(rules(), "tproxy") })
	with.signal(syscall.SIGKILL)
	if pid := without.await("MAINPID="); pid != strconv.Itoa(without.pid) {
		t.Errorf("the main process is %s after the new one was killed, want %d", pid, without.pid)
	}
	if left := rules(); strings.Contains(left, "tproxy") {
		t.Errorf("connections are still taken, and nothing accepts them: %s", left)
	}
	if err := held.end(); err != nil {
		t.Error(err)
	}
	r.until("the transfer has ended", func() bool { return r.status("entry").Total.Connections == 0 })
	if n := len(r.status("entry").Exits); n != 1 {
		t.Errorf("the status has %d exits, want 1", n)
	}
	if err := r.echo(r.forward); err != nil {
		t.Error(err)
	}
}

// A connection of a process that was replaced ends after the drain timeout, and the process with it.
func TestRelayDrainTimeout(t *testing.T) {
	r := newRelayTest(t, "--drain-timeout", "1s")
	x := r.transfer(r.server.String())
	r.until("the transfer is carried", func() bool { return r.status("entry").Total.Connections == 1 })
	former := r.entry
	r.entry = former.upgrade()
	if err := <-former.ended; err != nil {
		t.Errorf("the former process: %v", err)
	}
	if err := <-x.done; err == nil {
		t.Error("the connection has not ended")
	}
	if err := r.echo(r.server.String()); err != nil {
		t.Error(err)
	}
}

// A connection that goes direct, because it began while there was no exit, stays so when the exit returns.
func TestRelayDirectStays(t *testing.T) {
	r := newRelayTest(t)
	r.exit.kill()
	rules := func() bool {
		return strings.Contains(labtest.Run(t, r.lab.Node("entry"), "nft", "list", "ruleset"), "tproxy")
	}
	r.until("connections go direct", func() bool { return !rules() })
	c, err := r.dial(r.server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(text string) {
		t.Helper()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		got := make([]byte, len(text))
		io.WriteString(c, text)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
			t.Errorf("read %q, %v, want %q", got, err, text)
		}
	}
	io.WriteString(c, "e")
	ask("before")
	r.exit = r.start("exit")
	r.until("connections are taken", rules)
	ask("after")
}

// directWithin is the time within which new connections go direct when an agent has ended (issue 27).
const directWithin = time.Second

// New connections go direct when the entry ends or is killed, and when the exit is killed.
func TestRelayEnded(t *testing.T) {
	for _, c := range []struct {
		name, node string
		signal     syscall.Signal
	}{{"the entry ends", "entry", syscall.SIGTERM}, {"the entry is killed", "entry", syscall.SIGKILL}, {"the exit is killed", "exit", syscall.SIGKILL}} {
		t.Run(c.name, func(t *testing.T) {
			labtest.Try(t, func(check *labtest.Check) {
				r := newRelayTest(check)
				if err := r.echo(r.server.String()); err != nil {
					t.Fatal(err)
				}
				client, err := r.lab.Node("client").Addr(false)
				if err != nil {
					t.Fatal(err)
				}
				if _, direct := r.seen.Load(client.String()); direct {
					t.Fatal("a connection goes direct while both agents run")
				}
				var tries sync.WaitGroup
				check.Cleanup(func() {
					r.entry.kill()
					tries.Wait()
				})
				agent := map[string]*relayProcess{"entry": r.entry, "exit": r.exit}[c.node]
				agent.signal(c.signal)
				began := time.Now()
				r.until("a connection goes direct", func() bool {
					tries.Go(func() { r.echo(r.server.String()) }) // one to an exit that was just killed waits
					_, direct := r.seen.Load(client.String())
					return direct
				})
				took := time.Since(began)
				t.Logf("after %v", took)
				if took > directWithin {
					check.Errorf("a connection goes direct after %v, want at most %v", took, directWithin)
				}
			})
		})
	}
}
