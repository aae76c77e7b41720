package traffic

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// answerer is the server side of an asker's connection.
type answerer struct {
	r    *requester
	c    *conn
	head [MinRequest]byte
	got  int64 // bytes of the request
	left int64 // bytes of the response; 0 while the request is read
}

// answer serves a connection.
func (r *requester) answer(fd int, _ netip.AddrPort) error {
	c, err := r.a.accepted(r.f, fd)
	if err != nil {
		return err
	}
	c.main = true
	w := &answerer{r: r, c: c}
	c.ready = w.ready
	return nil
}

func (w *answerer) ready(events uint32) {
	if w.left > 0 {
		if w.write() != nil {
			w.c.close()
		}
		return
	}
	more, err := w.read()
	if err != nil || !more {
		w.c.close() // the asker has closed
	}
}

// read reads the request, and begins the response when the request is complete. It returns false at
// the end of the connection.
func (w *answerer) read() (more bool, err error) {
	if w.got < MinRequest {
		n, _, err := unix.Recvfrom(w.c.fd, w.head[w.got:], unix.MSG_DONTWAIT)
		if err == unix.EAGAIN || err == unix.EINTR {
			return true, nil
		}
		if err != nil || n == 0 {
			return false, err
		}
		w.got += int64(n)
		w.count(n)
		w.r.f.received.bytes += uint64(n)
		if w.got < MinRequest {
			return true, nil
		}
	}
	size, respond := int64(binary.BigEndian.Uint64(w.head[:])), int64(binary.BigEndian.Uint64(w.head[8:]))
	if size < MinRequest || size > largest || respond < 1 || respond > largest {
		return false, nil // not from an asker: the port is open to all of the lab
	}
	if w.got < size {
		n, eof, err := w.c.skip(size - w.got)
		if err != nil || eof {
			return false, err
		}
		w.got += n
		w.count(int(n))
		if w.got < size {
			return true, nil
		}
	}
	w.got, w.left = 0, respond
	return true, w.write()
}

func (w *answerer) count(n int) { w.r.total.RequestBytes += uint64(n) }

// write continues the response.
func (w *answerer) write() error {
	n, err := w.c.write(w.left)
	if err != nil {
		return err
	}
	w.left -= n
	events := uint32(unix.EPOLLIN)
	if w.left > 0 {
		events = unix.EPOLLOUT
	} else if w.r.f.Requests.Reconnect {
		// Only this direction is closed; the asker closes the connection.
		if err := unix.Shutdown(w.c.fd, unix.SHUT_WR); err != nil {
			return err
		}
	}
	return w.c.want(events)
}
