package host

import (
	"bytes"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay/stripe"
)

// buffers have the size of the largest payload.
var buffers = sync.Pool{New: func() any { return new([stripe.MaxPayload]byte) }}

// read reads from an application's connection, up to the largest payload. It holds no buffer while it waits: ten thousand
// idle connections would hold 640 MB.
func read(app net.Conn) ([]byte, error) {
	s, ok := app.(syscall.Conn)
	if !ok {
		return readNow(app.Read)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	var data []byte
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			data, failed = readNow(func(b []byte) (int, error) { return unix.Read(int(fd), b) })
			if failed != unix.EINTR {
				return failed != unix.EAGAIN
			}
		}
	})
	if err == nil {
		err = failed
	}
	return data, err
}

// smallRead is below which size what was read is copied, so that a small piece does not hold a large buffer.
const smallRead = stripe.MaxPayload / 4

// readNow calls a read function with a buffer.
func readNow(read func([]byte) (int, error)) ([]byte, error) {
	b := buffers.Get().(*[stripe.MaxPayload]byte)
	n, err := read(b[:])
	if n >= smallRead {
		return b[:n], err
	}
	defer buffers.Put(b)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return bytes.Clone(b[:max(n, 0)]), err
}
