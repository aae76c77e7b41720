package host

import (
	"bytes"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay/stripe"
)

// read reads what an application's connection has, up to the largest payload. It holds no buffer while it waits: ten
// thousand idle connections would hold 640 MB. Data and an error may both be returned.
func read(app net.Conn) (data []byte, err error) {
	s, ok := app.(syscall.Conn)
	if !ok {
		return fill(app.Read, false)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		data, failed = fill(func(b []byte) (int, error) { return rawRead(fd, b) }, true)
		return failed != unix.EAGAIN
	})
	if err == nil {
		err = failed
	}
	return data, err
}

// smallRead is below which size what was read is copied, so that a small piece does not hold a large buffer.
const smallRead = stripe.MaxPayload / 4

// fill calls a read function once, or, with more, until it has nothing more or the buffer is full: one large chunk costs
// less than several small ones. The error is EAGAIN only if nothing was read.
func fill(read func([]byte) (int, error), more bool) (data []byte, err error) {
	b := payloads.get()
	n := 0
	for n < len(b) {
		var m int
		m, err = read(b[n:])
		n += max(m, 0)
		if err == unix.EINTR {
			continue
		}
		if m == 0 && err == nil {
			err = io.EOF
		}
		if err != nil || !more {
			break
		}
	}
	if err == unix.EAGAIN && n > 0 {
		err = nil
	}
	if n >= smallRead {
		return b[:n], err
	}
	defer payloads.put(b)
	return bytes.Clone(b[:n]), err
}
