package traffic

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of TCP_NOTSENT_LOWAT, chosen by this project. A schedule cannot take back unsent bytes in the
// socket; 4 ms of the highest rate keep TCP busy from tick to tick even when one is late. Unlimited
// flows move between the limits.
const (
	unsentTime = 4 * time.Millisecond
	minUnsent  = 16 << 10
	maxUnsent  = 4 << 20
)

// chunk is the maximum that is written and read at once. All data are zeros.
const chunk = 1 << 20

var zeros = make([]byte, chunk)

// tcpSender writes whole segments to its socket.
type tcpSender struct {
	f      *flow
	part   int // bytes of the last segment that the socket has accepted
	unsent int // current TCP_NOTSENT_LOWAT
}

func newTCPSender(f *flow) (*tcpSender, error) {
	t := &tcpSender{f: f}
	return t, t.limitUnsent(max(bytesIn(f.highest(), unsentTime), 2*f.payload, minUnsent))
}

func (t *tcpSender) limitUnsent(n int) error {
	n = min(n, maxUnsent)
	if n == t.unsent {
		return nil
	}
	t.unsent = n
	return unix.SetsockoptInt(t.f.send, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
}

func (t *tcpSender) work(now int64) (due int64, err error) {
	f, p := t.f, &t.f.pacer
	if p.update(now) == Unlimited {
		return now + int64(tick), t.fill()
	}
	// 1e-6 of a frame compensates for rounding.
	const rounding = 1e-6
	part := func() float64 { return float64(t.part) / float64(f.payload) }
	if segments := int(p.owed/p.frameBits + part() + rounding); segments > 0 {
		n, err := t.write(segments*f.payload - t.part)
		p.owed -= float64(n) / float64(f.payload) * p.frameBits
		if err != nil {
			return 0, err
		}
	}
	return p.due(now, (1-part()-rounding)*p.frameBits), nil
}

// fill writes until the socket accepts no more. The limit of unsent data follows what the socket can
// send in a tick: it is doubled when the socket ran empty, and reduced when half was left.
func (t *tcpSender) fill() error {
	left, err := ioctlInt(t.f.send, unix.SIOCOUTQNSD)
	if err != nil {
		return err
	}
	switch {
	case left == 0:
		err = t.limitUnsent(t.unsent * 2)
	case left > t.unsent/2:
		err = t.limitUnsent(max(t.unsent*3/4, minUnsent))
	}
	if err != nil {
		return err
	}
	n, err := t.write(2 * maxUnsent)
	t.f.sent.unlimited += float64(n) / float64(t.f.payload) * t.f.pacer.frameBits
	return err
}

// write writes up to want bytes and returns how many the socket accepted.
func (t *tcpSender) write(want int) (done int, err error) {
	for done < want {
		n, err := unix.Write(t.f.send, zeros[:min(want-done, len(zeros))])
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, fmt.Errorf("send: %w", err)
		}
		done += n
	}
	t.part = (t.part + done) % t.f.payload
	t.f.sent.bytes += uint64(done)
	return done, nil
}

// tcpReceiver reads without copying: MSG_TRUNC discards (tcp(7)).
type tcpReceiver struct{ f *flow }

func (t *tcpReceiver) work() error {
	var got uint64
	defer t.f.keepClamp(t.f.recv)
	defer func() {
		t.f.mu.Lock()
		t.f.received.bytes += got
		t.f.mu.Unlock()
	}()
	for {
		n, _, err := unix.Recvfrom(t.f.recv, sink, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		case n == 0:
			return io.EOF
		}
		got += uint64(n)
		if n < len(sink) {
			return nil
		}
	}
}

// sink is a buffer that is not written to.
var sink = make([]byte, chunk)
