package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
)

// echo is a server that sends back what it gets, and keeps from where connections came.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	from     map[string]bool
	got      uint64 // bytes
}

// listen starts a server at a node.
func listen(n *lab.Node, at netip.AddrPort) (*echo, error) {
	e := &echo{from: map[string]bool{}}
	err := n.Do(func() (err error) {
		e.listener, err = net.Listen("tcp", at.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := e.listener.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.from[c.RemoteAddr().String()] = true
			e.mu.Unlock()
			go e.serve(c)
		}
	}()
	return e, nil
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		e.mu.Lock()
		e.got += uint64(n)
		e.mu.Unlock()
		if n > 0 && n < echoed {
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// echoed is below how many bytes at a time are sent back: those of a bulk transfer are not.
const echoed = 1000

// received returns the bytes that the server has got.
func (e *echo) received() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

func (e *echo) saw(address string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.from[address]
}

// dial opens a connection from a node.
func dial(ctx context.Context, n *lab.Node, to netip.AddrPort, within time.Duration) (c *net.TCPConn, err error) {
	if err := n.Do(func() error {
		c, err = begin(to)
		return err
	}); err != nil {
		return nil, err
	}
	if err := open(ctx, c, within); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// begin sends the first segment of a connection from the namespace of its thread, and does not wait for an answer: a thread that waits for each of thousands of
// connections costs more than the connections.
func begin(to netip.AddrPort) (*net.TCPConn, error) {
	family, address := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if to.Addr().Is6() {
		family, address = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close()
	if err := unix.Connect(fd, address); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// open waits until a connection that has begun is open.
func open(ctx context.Context, c *net.TCPConn, within time.Duration) error {
	if err := c.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })()
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Write(func(fd uintptr) bool {
		n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && n != 0 {
			err = unix.Errno(n)
		}
		if refused = err; refused != nil {
			return true
		}
		_, err = unix.Getpeername(int(fd))
		return err == nil
	})
	return errors.Join(refused, err, c.SetWriteDeadline(time.Time{}))
}

// ping opens a connection, and returns it with the time until the first byte came back.
func ping(ctx context.Context, n *lab.Node, to netip.AddrPort, within time.Duration) (*net.TCPConn, time.Duration, error) {
	began := time.Now()
	c, err := dial(ctx, n, to, within)
	if err != nil {
		return nil, 0, err
	}
	if err := again(c, within); err != nil {
		c.Close()
		return nil, 0, err
	}
	return c, time.Since(began), nil
}

// again sends a byte over a connection, and waits until it comes back.
func again(c net.Conn, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	b := []byte{1}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b)
	return err
}

// bulk sends as much as it can for a time, and returns the rate in bit/s of payload that the server got, from the time skipped on.
func bulk(ctx context.Context, n *lab.Node, to netip.AddrPort, e *echo, length, skip time.Duration) (float64, error) {
	c, err := dial(ctx, n, to, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(length + 5*time.Second)); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() {
		b := make([]byte, 64<<10)
		for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
			if _, err := c.Write(b); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case <-time.After(skip):
	case err := <-done:
		return 0, fmt.Errorf("the transfer has ended early: %w", err)
	}
	began, before := time.Now(), e.received()
	select {
	case <-time.After(length - skip):
	case err := <-done:
		if err != nil {
			return 0, err
		}
	}
	rate := float64(e.received()-before) * 8 / time.Since(began).Seconds()
	c.SetLinger(0) // what is under way is not waited for
	return rate, ctx.Err()
}
