package traffic

import (
	"container/heap"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// apps runs all Requests and Transfers of a session on one goroutine, which their sockets and timers
// wake immediately, so that latencies are not rounded to ticks.
type apps struct {
	epoll, timer int
	flows        []*flow

	mu      sync.Mutex // guards what the loop changes and samples read
	conns   map[int32]*conn
	lastID  int32
	timers  timerQueue
	opening int   // connections of the start in progress
	start   int64 // CLOCK_MONOTONIC ns
	armed   int64 // time of the timer
	// idle, if set, is called when the last Transfer has ended.
	idle      func()
	transfers int // Transfers in progress
	events    [256]unix.EpollEvent
}

// app is a running Requests or Transfer.
type app interface {
	// open opens the listener and the persistent connections.
	open() error
	// begin sets the timers; from here on times are ns since the run's start.
	begin()
	// interval and result add the application's own results.
	interval(*Interval)
	result(*FlowResult)
}

func newApps() (*apps, error) {
	a := &apps{epoll: -1, timer: -1, conns: map[int32]*conn{}}
	var err error
	if a.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cannot create an epoll instance: %w", err)
	}
	if a.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err == nil {
		ev := unix.EpollEvent{Events: unix.EPOLLIN} // id 0
		err = unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, a.timer, &ev)
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("cannot create a timer: %w", err)
	}
	return a, nil
}

// now returns ns since the run's start.
func (a *apps) now() int64 { return mono() - a.start }

// settle runs the loop until all persistent connections are open.
func (a *apps) settle(deadline time.Time) error {
	for a.opening > 0 {
		if time.Now().After(deadline) {
			return errors.New("cannot connect: timed out")
		}
		if err := a.turn(time.Until(deadline)); err != nil {
			return err
		}
		for _, f := range a.flows {
			if f.failure != nil {
				return fmt.Errorf("flow %q: %w", f.Name, f.failure)
			}
		}
	}
	return nil
}

// loop runs from the start until stop.
func (a *apps) loop(start int64, stop <-chan struct{}) {
	a.mu.Lock()
	a.start = start
	for _, f := range a.flows {
		f.app.begin()
	}
	a.mu.Unlock()
	for {
		select {
		case <-stop:
			return
		default:
		}
		// 10 ms is the maximum delay of noticing the end.
		if err := a.turn(10 * time.Millisecond); err != nil {
			for _, f := range a.flows {
				f.fail(err)
			}
			return
		}
	}
}

// turn waits for events and handles them.
func (a *apps) turn(patience time.Duration) error {
	if err := a.arm(); err != nil {
		return err
	}
	n, err := unix.EpollWait(a.epoll, a.events[:], int(patience.Milliseconds())+1)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("cannot wait for sockets: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.timers) > 0 && a.timers[0].at <= a.now() {
		t := heap.Pop(&a.timers).(timer)
		t.do(t.at)
	}
	for _, ev := range a.events[:max(n, 0)] {
		// A connection that was closed in this turn was removed.
		if c := a.conns[ev.Fd]; c != nil {
			c.ready(ev.Events)
		}
	}
	return nil
}

// arm sets the timer to the earliest deadline. The timer is not read: an expired one wakes the loop
// until it is set again.
func (a *apps) arm() error {
	want := int64(0) // none
	if len(a.timers) > 0 {
		want = a.timers[0].at + a.start
	}
	if want == a.armed {
		return nil
	}
	a.armed = want
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(want)}
	return unix.TimerfdSettime(a.timer, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

// after calls do at ns since the start, and passes that time, not the time at which the loop got to
// it.
func (a *apps) after(at int64, do func(at int64)) { heap.Push(&a.timers, timer{at, do}) }

type timer struct {
	at int64
	do func(at int64)
}

type timerQueue []timer

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q timerQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *timerQueue) Push(x any)        { *q = append(*q, x.(timer)) }
func (q *timerQueue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = timer{}
	*q = (*q)[:last]
	return t
}

// transferOver is called once for each Transfer.
func (a *apps) transferOver() {
	if a.transfers--; a.transfers == 0 && a.idle != nil {
		a.idle()
	}
}

// close resets all connections (RST).
func (a *apps) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		c.abort()
	}
	for _, fd := range []*int{&a.timer, &a.epoll} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// conn is an application's end of a connection, or its listener.
type conn struct {
	a       *apps
	f       *flow
	fd      int
	id      int32
	watched uint32              // events
	ready   func(events uint32) // set by the application
	peers   map[*conn]struct{}  // the open connections of the same flow
	main    bool                // its window and RTT are the flow's
}

// watch adds fd to the loop, which calls ready.
func (a *apps) watch(f *flow, fd int, events uint32) (*conn, error) {
	a.lastID++
	c := &conn{a: a, f: f, fd: fd, id: a.lastID, watched: events}
	ev := unix.EpollEvent{Events: events, Fd: c.id}
	if err := unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot watch a socket: %w", err)
	}
	a.conns[c.id] = c
	return c, nil
}

// want changes the watched events.
func (c *conn) want(events uint32) error {
	if events == c.watched {
		return nil
	}
	c.watched = events
	return unix.EpollCtl(c.a.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: c.id})
}

// close adds the connection's counts to those of the flow and closes it.
func (c *conn) close() {
	if c.fd < 0 {
		return
	}
	if c.peers != nil {
		if s, err := stateOf(c.fd, c.f.MPTCP); err == nil {
			c.f.closed.retransmits += s.retransmits
			c.f.closed.deliveredCE += s.deliveredCE
		}
		delete(c.peers, c)
	}
	delete(c.a.conns, c.id)
	unix.Close(c.fd)
	c.fd = -1
}

// abort is close with a reset.
func (c *conn) abort() {
	if c.fd >= 0 {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		c.close()
	}
}

// listen opens a listener at e, whose connections are passed to accept.
func (a *apps) listen(f *flow, e end, accept func(fd int, peer netip.AddrPort) error) (addr netip.AddrPort, err error) {
	fd, addr, err := f.listen(e)
	if err != nil {
		return addr, err
	}
	l, err := a.watch(f, fd, unix.EPOLLIN)
	if err != nil {
		return addr, err
	}
	l.ready = func(uint32) {
		for {
			fd, sa, err := unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			switch {
			case err == unix.EAGAIN:
				return
			case err == unix.EINTR || err == unix.ECONNABORTED:
				continue
			case err == nil:
				err = accept(fd, addrPort(sa))
			}
			if err != nil {
				f.fail(fmt.Errorf("accept: %w", err))
				l.close()
				return
			}
		}
	}
	return addr, nil
}

// accepted returns the conn of an accepted socket.
func (a *apps) accepted(f *flow, fd int) (*conn, error) {
	err := f.markAccepted(fd)
	if err == nil {
		err = f.setCongestion(fd)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	c, err := a.watch(f, fd, unix.EPOLLIN)
	if err == nil {
		c.join()
	}
	return c, err
}

// join adds the connection to those of the flow.
func (c *conn) join() {
	c.peers = c.f.conns
	c.peers[c] = struct{}{}
}

// dial starts a connection. made is called once, when it is open or has failed. Then the application
// sets ready.
func (a *apps) dial(f *flow, from end, to netip.AddrPort, made func(c *conn, err error)) (local netip.AddrPort, err error) {
	fd, local, err := f.dial(from, to)
	if err != nil {
		return local, err
	}
	c, err := a.watch(f, fd, unix.EPOLLOUT)
	if err != nil {
		return local, err
	}
	c.ready = func(uint32) {
		e, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && e != 0 {
			err = unix.Errno(e)
		}
		if err == nil {
			c.join()
			err = f.describe(c.fd)
		}
		if err != nil {
			c.close()
			made(nil, fmt.Errorf("cannot connect to %v: %w", to, err))
			return
		}
		made(c, nil)
	}
	return local, nil
}

// write writes up to left bytes of zeros and returns how many the socket took. It writes one chunk at
// most, so that other connections get their turn.
func (c *conn) write(left int64) (int64, error) {
	for {
		n, err := unix.Write(c.fd, zeros[:min(left, chunk)])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("send: %w", err)
		}
		c.f.sent.bytes += uint64(n)
		return int64(n), nil
	}
}

// skip reads up to left bytes without copying them; eof reports the end of the stream.
func (c *conn) skip(left int64) (n int64, eof bool, err error) {
	defer c.f.keepClamp(c.fd)
	for {
		n, _, err := unix.Recvfrom(c.fd, sink[:min(left, chunk)], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, false, nil
		case err != nil:
			return 0, false, fmt.Errorf("receive: %w", err)
		}
		c.f.received.bytes += uint64(n)
		return int64(n), n == 0, nil
	}
}
