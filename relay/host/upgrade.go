package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// An upgrade: the process starts its program again, which may be another version with another configuration, and passes
// its listening sockets to it (docs/decisions/0034-upgrades-of-the-relay.md). Messages between the two:
//
//	successor: ready, with the sockets that it uses
//	former:    accept, after it has stopped accepting
//	successor: end, when it stops or has a successor itself
//
// A successor that ends without a message has failed: the former process, while it has connections, accepts again.

// Constants of upgrades, chosen for Headgate.
const (
	// readyTimeout is how long a new process may take until it can accept connections.
	readyTimeout = time.Minute
	// streamsTimeout is how long it waits for its streams.
	streamsTimeout = 5 * time.Second
	// acceptTimeout is how long it waits for the former process to stop accepting: one that hangs must not block it.
	acceptTimeout = 10 * time.Second
	// resumeTimeout is how long a process that accepts again waits for its streams.
	resumeTimeout = time.Second
	// DrainTimeout is the default of Upgrade.
	DrainTimeout = 24 * time.Hour
)

// Upgrade hands the listeners of an agent over to another process of the same program, and takes them over.
type Upgrade struct {
	// Requests are requests to start a new process that takes over.
	Requests <-chan os.Signal
	// DrainTimeout is the maximum time for which connections are carried after that.
	DrainTimeout time.Duration
	// Notify sends a message to the service manager (sd_notify).
	Notify func(string)

	former       *peer // the process from which this one takes over; nil for none
	sockets      []*socket
	intercepting bool // former changed how the kernel handles connections
}

// handoverEnv has a handover as JSON, for the new process. Its descriptors begin at firstFD: the connection to the
// former process, and the sockets.
const (
	handoverEnv = "HEADGATE_RELAY_HANDOVER"
	firstFD     = 3
)

type handover struct {
	Sockets      []string `json:"sockets"`
	Intercepting bool     `json:"intercepting,omitempty"`
}

// NewUpgrade returns an upgrade for a process, with what a former process hands over to it.
func NewUpgrade(requests <-chan os.Signal, drain time.Duration, notify func(string)) (*Upgrade, error) {
	u := &Upgrade{Requests: requests, DrainTimeout: drain, Notify: notify}
	text, is := os.LookupEnv(handoverEnv)
	if !is {
		return u, nil
	}
	os.Unsetenv(handoverEnv) // for programs that this one starts
	var h handover
	err := json.Unmarshal([]byte(text), &h)
	if err != nil {
		return nil, fmt.Errorf("malformed %s: %w", handoverEnv, err)
	}
	for n, key := range append([]string{"former process"}, h.Sockets...) {
		fd := firstFD + n
		unix.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), key)
		if n > 0 {
			u.sockets = append(u.sockets, &socket{key: key, file: file})
		} else if u.former, err = newPeer(file); err != nil {
			return nil, fmt.Errorf("cannot take over from the former process: %w", err)
		}
	}
	u.intercepting = h.Intercepting
	return u, nil
}

// peer is the other process of a handover.
type peer struct {
	conn    net.Conn
	process *exec.Cmd // nil for the former process
}

func newPeer(file *os.File) (*peer, error) {
	defer file.Close()
	c, err := net.FileConn(file)
	return &peer{conn: c}, err
}

// message is what the two processes of a handover send each other.
type message struct {
	Ready        bool     `json:"ready,omitempty"`
	Sockets      []string `json:"sockets,omitempty"`      // that it uses
	Intercepting bool     `json:"intercepting,omitempty"` // it changes how the kernel handles connections
	Accept       bool     `json:"accept,omitempty"`
	End          bool     `json:"end,omitempty"`
}

func (p *peer) send(m message) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = p.conn.Write(text)
	}
	return err
}

// receive reads a message. The connection keeps the bounds of messages.
func (p *peer) receive() (m message, err error) {
	b := make([]byte, 64<<10)
	n, err := p.conn.Read(b)
	if err == nil {
		err = json.Unmarshal(b[:n], &m)
	}
	return m, err
}

// startSuccessor starts a process that takes over, and returns when it is ready, with its message.
func (a *Agent) startSuccessor(ctx context.Context) (*peer, message, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, message{}, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "successor")
	defer theirs.Close()
	p, err := newPeer(os.NewFile(uintptr(pair[0]), "successor"))
	if err != nil {
		return nil, message{}, err
	}
	text, err := json.Marshal(handover{a.sockets.keys(), intercepts(a.policy)})
	if err != nil {
		return nil, message{}, err
	}
	c := exec.Command(os.Args[0], os.Args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Env = append(os.Environ(), handoverEnv+"="+string(text))
	c.ExtraFiles = []*os.File{theirs}
	for _, one := range a.sockets.all {
		c.ExtraFiles = append(c.ExtraFiles, one.file)
	}
	if err := c.Start(); err != nil {
		p.conn.Close()
		return nil, message{}, err
	}
	theirs.Close() // so that its end is seen
	p.process = c
	defer context.AfterFunc(ctx, func() { c.Process.Kill() })()
	m, err := p.receive()
	if err == nil && !m.Ready {
		err = errors.New("unexpected message")
	}
	if err != nil {
		c.Process.Kill()
		p.conn.Close()
		switch ended := c.Wait(); {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("it was not ready after %v", readyTimeout)
		case ended != nil:
			err = ended
		}
		return nil, message{}, err
	}
	return p, m, nil
}

// takeOver makes the former process stop accepting.
func (a *Agent) takeOver() {
	u := a.Upgrade
	a.sockets.retain(func(one *socket) bool { return one.used })
	_ = u.former.conn.SetReadDeadline(time.Now().Add(acceptTimeout))
	err := u.former.send(message{Ready: true, Sockets: a.sockets.keys(), Intercepting: intercepts(a.policy)})
	if err == nil {
		_, err = u.former.receive()
	}
	if err != nil {
		a.log.Warn("the former process did not hand over in order", "error", err)
	}
	if u.intercepting && !intercepts(a.policy) {
		if err := removeInterception(); err != nil {
			a.log.Error("cannot remove what takes connections", "error", err)
		}
	}
}

// end tells the former process that an end of this one is no failure.
func (p *peer) end() {
	if p != nil {
		_ = p.send(message{End: true})
	}
}

// watch returns when the successor ends, or has a successor itself; ok is false if it has failed.
func (p *peer) watch() (ok bool) {
	m, err := p.receive()
	go p.process.Wait()
	return err == nil && m.End
}

func (p *peer) kill() {
	p.process.Process.Kill()
	p.process.Wait()
}
