package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// The time in which the controller itself did not run is no silence of the switch: it is asked, and has all the time for its answer. A
// silence before and after it counts.
func TestWatcher(t *testing.T) {
	const s = time.Second
	type look struct {
		now, last time.Duration
		want      verdict
	}
	every := func(from, to, last time.Duration) (all []look) {
		for now := from; now < to; now += s {
			all = append(all, look{now, last, wait})
		}
		return all
	}
	join := func(parts ...[]look) (all []look) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for what, looks := range map[string][]look{ // the interval is 4 s, the timeout 8 s, and there may be a look each second
		"silent":  join(every(1*s, 4*s, 0), []look{{4 * s, 0, ask}}, every(5*s, 12*s, 0), []look{{12 * s, 0, dead}}),
		"answers": join(every(1*s, 4*s, 0), []look{{4 * s, 0, ask}}, every(5*s, 9*s, 5*s), []look{{9 * s, 5 * s, ask}}),
		// It was stopped from 2 s to 60 s.
		"stopped": join(every(1*s, 3*s, 0), []look{{60 * s, 0, ask}}, every(61*s, 68*s, 0), []look{{68 * s, 0, dead}}),
		// It was stopped after the question.
		"asked": join(every(1*s, 4*s, 0), []look{{4 * s, 0, ask}, {60 * s, 0, wait}}, every(61*s, 67*s, 0), []look{{67 * s, 0, dead}}),
		// What came before the stop is read after it, or at once.
		"heard before": join(every(1*s, 3*s, 0), []look{{60 * s, 2500 * time.Millisecond, wait}, {62500 * time.Millisecond, 2500 * time.Millisecond, ask}}),
		"heard after":  join(every(1*s, 3*s, 0), []look{{60 * s, 60 * s, wait}, {61 * s, 60 * s, wait}, {62 * s, 60 * s, wait}, {63 * s, 60 * s, wait}, {64 * s, 60 * s, ask}}),
		"twice":        join(every(1*s, 3*s, 0), []look{{60 * s, 0, ask}, {120 * s, 0, wait}}, every(121*s, 127*s, 0), []look{{127 * s, 0, dead}}),
		"late":         join([]look{{1900 * time.Millisecond, 0, wait}, {3800 * time.Millisecond, 0, wait}, {5700 * time.Millisecond, 0, ask}}),
	} {
		w := watcher{interval: 4 * s, timeout: 8 * s, tick: s, due: 4 * s}
		for n, l := range looks {
			if got := w.look(l.now, l.last); got != l.want {
				t.Errorf("%s: look %d, at %v: %v, want %v", what, n, l.now, got, l.want)
			}
		}
	}
}

// stoppedEnv is the address of the peer to which the test, as another process, opens a session.
const stoppedEnv = "SESSION_STOPPED_PEER"

// The options of that session: it would end after 2.4 s of silence.
var stoppedOptions = Options{EchoInterval: 400 * time.Millisecond, EchoTimeout: 2 * time.Second}

// TestStoppedController: a controller that was stopped for longer than a switch may be silent keeps the session when it goes on.
func TestStoppedController(t *testing.T) {
	if at := os.Getenv(stoppedEnv); at != "" {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Open(context.Background(), conn, stoppedOptions)
		if err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if err := c.Err(); errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	controller := exec.Command(os.Args[0], "-test.run=^TestStoppedController$")
	controller.Env = append(os.Environ(), stoppedEnv+"="+l.Addr().String())
	controller.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	controller.Stdout, controller.Stderr = &said, &said
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	defer controller.Process.Kill()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t, conn, bufio.NewReader(conn)}
	p.handshake()
	answered := make(chan time.Time, 100)
	go func() {
		for {
			xid, m, err := p.next()
			if err != nil {
				close(answered)
				return
			}
			if m.Type() == openflow.TypeEchoRequest {
				p.send(xid, &openflow.EchoReply{})
				answered <- time.Now()
			}
		}
	}()
	<-answered
	time.Sleep(stoppedOptions.EchoInterval / 4) // until it has read the answer; no other is on its way
	if err := controller.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(stoppedOptions.EchoInterval + stoppedOptions.EchoTimeout + 600*time.Millisecond)
	began := time.Now()
	if err := controller.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for asked := range answered { // after an answer that it reads, it asks once more
		if asked.Sub(began) > stoppedOptions.EchoInterval {
			conn.Close()
		}
	}
	if err := controller.Wait(); err != nil {
		t.Errorf("the session of a controller that was stopped has ended: %v: %s", err, said.String())
	}
	_, _ = io.Copy(io.Discard, conn)
}
