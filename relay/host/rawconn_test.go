package host

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// tcpPair returns two ends of a connection over loopback.
func tcpPair(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// A rawConn behaves as the connection that it is of: it waits, carries everything, and tells of the end, a reset and a
// deadline.
func TestRawConn(t *testing.T) {
	a, b := tcpPair(t)
	from, to := newRawConn(a).(*rawConn), newRawConn(b).(*rawConn)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than the socket's buffers hold
	written := make(chan error)
	go func() {
		time.Sleep(50 * time.Millisecond)
		n, err := from.writev(want[:10], want[10:])
		if err == nil && n != len(want) {
			err = io.ErrShortWrite
		}
		written <- err
	}()
	got := make([]byte, len(want))
	to.beQuiet()
	if _, err := io.ReadFull(to, got[:1]); err != nil { // nothing has come: the first byte must wake
		t.Fatal(err)
	}
	if n, err := to.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if _, err := io.ReadFull(to, got[1:]); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil || !bytes.Equal(got, want) {
		t.Errorf("written: %v, the bytes are equal: %v", err, bytes.Equal(got, want))
	}
	to.beQuiet()
	go func() {
		time.Sleep(20 * time.Millisecond)
		from.Write([]byte("x"))
	}()
	began := time.Now()
	if _, err := io.ReadFull(to, got[:1]); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("a byte of a quiet connection came after %v: %v", time.Since(began), err)
	}

	total := 0
	for { // nobody reads
		n, err := from.tryWrite(want)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n == 0 {
			break
		}
	}
	if total == 0 {
		t.Error("tryWrite wrote nothing")
	}
	if err := from.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Write(want); !isTimeout(err) {
		t.Errorf("a write after the deadline: %v", err)
	}
	a.Close()
	if n, err := io.Copy(io.Discard, to); err != nil || n == 0 {
		t.Errorf("%d bytes before the end, %v", n, err)
	}
	if _, err := to.Read(got); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if _, err := from.Write(want); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}

	a, b = tcpPair(t)
	reset(a)
	if _, err := newRawConn(b).Read(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
