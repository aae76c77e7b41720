package host

import (
	"bufio"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay/stripe"
)

const (
	// lowWater is how many bytes may wait in a stream's socket before it takes no more frames (TCP_NOTSENT_LOWAT):
	// what waits there cannot be sent on a faster stream any longer.
	lowWater = 128 << 10
	// socketBuffer is the size of the socket's buffers where the process may exceed net.core.{r,w}mem_max: the
	// bytes on the way at 1 Gbit/s and 250 ms. The kernel uses memory only for what is in them.
	socketBuffer = 32 << 20
	// readBuffer is the size of the buffer between a stream's socket and the frames.
	readBuffer = 256 << 10
)

// stream is a TCP connection that carries frames.
type stream struct {
	number   uint32
	conn     net.Conn
	raw      syscall.RawConn // of the TCP connection
	out      chan stripe.Frame
	rate     rate // for the status
	idling   idling
	regrowth regrowth
	// apart are frames that the session neither sends nor counts. One place is for goAway.
	apart chan stripe.Frame
	// tcpSent and tcpLost are the bytes that TCP had sent and lost at the last reading, for the status.
	tcpSent, tcpLost uint64
}

// prepare sets a socket's options before it connects or listens, so that the window scale fits the buffers.
func prepare(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		for _, o := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o, socketBuffer) // without the right to, the kernel's own sizes stay
		}
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowWater)
	})
}

// AddStream adds a stream to the link: tcp is the connection, and over what carries the bytes, such as TLS over it.
// It returns when the stream has ended.
func (l *Link) AddStream(number uint32, tcp *net.TCPConn, over net.Conn) error {
	st, err := l.addStream(number, tcp, over)
	if err != nil {
		return err
	}
	return l.serve(st)
}

// addStream adds a stream to the link; serve carries its frames.
func (l *Link) addStream(number uint32, tcp *net.TCPConn, over net.Conn) (*stream, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	st := &stream{number: number, conn: over, raw: raw, out: make(chan stripe.Frame, 1), apart: make(chan stripe.Frame, 3)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	l.streams[number] = st
	l.session.AddStream(number, st.estimate())
	l.session.SetPath(number, l.observed.paths[number])
	l.session.Writable(number, st.estimate())
	if l.goingAway {
		st.apart <- goAway
	}
	l.ask(st)
	l.pump()
	return st, nil
}

// serve carries the frames of a stream until it ends.
func (l *Link) serve(st *stream) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(st)
	}()
	err := l.read(st)
	l.mu.Lock()
	delete(l.streams, st.number)
	l.leave(st.number)
	l.session.RemoveStream(st.number)
	close(st.out)
	l.wakeConnecting()
	l.pump()
	l.mu.Unlock()
	st.conn.Close()
	<-written
	return err
}

// write writes the frames of a stream.
func (l *Link) write(st *stream) {
	header := make([]byte, 0, 64)
	for {
		var f stripe.Frame
		open := true
		select {
		case f, open = <-st.out:
		case f = <-st.apart:
		}
		if !open {
			return
		}
		header = stripe.AppendHeader(header[:0], f)
		if err := writeFrame(st.conn, header, f.Payload); err != nil {
			st.conn.Close() // read sees it
			return
		}
		if isApart(f) {
			continue
		}
		e := st.estimate()
		l.mu.Lock()
		st.idling.sent += uint64(len(f.Payload))
		l.session.Writable(st.number, e)
		l.pump()
		l.mu.Unlock()
	}
}

// writeFrame writes a frame with one system call.
func writeFrame(c net.Conn, header, payload []byte) error {
	if secure, ok := c.(*secureConn); ok {
		return secure.writeFrame(header, payload)
	}
	if raw, ok := c.(*rawConn); ok {
		_, err := raw.writev(header, payload)
		return err
	}
	buffers := net.Buffers{header, payload}
	_, err := buffers.WriteTo(c)
	return err
}

// read processes the frames that arrive on a stream.
func (l *Link) read(st *stream) error {
	from := io.Reader(st.conn)
	if _, secure := st.conn.(*secureConn); !secure {
		from = &batched{Conn: st.conn}
	}
	r := bufio.NewReaderSize(from, readBuffer)
	var arrived []*conn
	for {
		f, err := stripe.ReadFrame(r, newPayload)
		if err != nil {
			return err
		}
		if isGoAway(f) {
			if l.replaced != nil {
				l.replaced()
			}
			continue
		}
		if isAnnouncing(f) {
			l.answer(st, f)
			continue
		}
		arrived, err = l.receive(st, f, arrived)
		if err != nil {
			return err
		}
		for _, k := range arrived {
			k.deliver()
		}
	}
}

// receive processes a frame that arrived on a stream, and returns the connections to which something can be passed on.
// scratch is memory for them.
func (l *Link) receive(st *stream, f stripe.Frame, scratch []*conn) (arrived []*conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading, l.arrived = true, scratch[:0]
	err = l.session.Receive(st.number, f, l.now())
	l.pump()
	arrived = l.arrived
	l.reading, l.arrived = false, nil
	return arrived, err
}
