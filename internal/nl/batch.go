package nl

import (
	"errors"
	"fmt"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Batch is a list of rtnetlink requests that are sent to the kernel in one sendmsg.
//
// The kernel processes all of them during this one system call, and checks for signals only when
// the call returns (net/netlink/af_netlink.c, netlink_rcv_skb; net/core/rtnetlink.c takes rtnl_lock
// uninterruptibly). So a process that is killed with -9 has executed either the whole batch or
// nothing of it. Requests are independent: a failed one does not stop the later ones.
type Batch struct {
	msgs []netlink.Message
	what []requestDescription
}

// requestDescription describes a request. Its text is only built when the request fails: building 16,000 texts
// took 10 ms.
type requestDescription struct {
	words string
	of    Handle // 0 if words are the whole text
}

func (t requestDescription) String() string {
	if t.of == 0 {
		return t.words
	}
	return t.words + " " + t.of.String()
}

// add appends a request.
func (b *Batch) add(what requestDescription, typ uint16, flags netlink.HeaderFlags, payload []byte) {
	b.msgs = append(b.msgs, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | flags},
		Data:   payload,
	})
	b.what = append(b.what, what)
}

// Len returns the number of requests.
func (b *Batch) Len() int { return len(b.msgs) }

// Failure is a request that the kernel rejected.
type Failure struct {
	What  string
	Errno error
	Ext   string // the kernel's error message, if any
}

func (f Failure) Error() string {
	if f.Ext != "" {
		return fmt.Sprintf("cannot %s: %v (%s)", f.What, f.Errno, f.Ext)
	}
	return fmt.Sprintf("cannot %s: %v", f.What, f.Errno)
}

func (f Failure) Unwrap() error { return f.Errno }

// sendBuffer is large enough for 16,000 groups with a class and a leaf qdisc each, in both
// directions: 64,000 requests of about 200 bytes. The kernel doubles the value, and rejects larger
// messages (EMSGSIZE).
const sendBuffer = 32 << 20

// Conn is an rtnetlink socket in the network namespace of the thread that
// opened it.
type Conn struct{ c *netlink.Conn }

// Open opens a socket.
func Open() (*Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot open a netlink socket: %w", err)
	}
	raw, err := c.SyscallConn()
	if err == nil {
		var refused error
		if err = raw.Control(func(fd uintptr) { refused = enlarge(int(fd)) }); err == nil {
			err = refused
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot enlarge a netlink socket's buffers: %w", err)
	}
	_ = c.SetOption(netlink.ExtendedAcknowledge, true) // for error messages only
	addOwnPort(c.PID())
	return &Conn{c}, nil
}

// enlarge sets the socket's buffers. Without CAP_NET_ADMIN they are at most net.core.wmem_max and rmem_max, which
// is enough to read.
func enlarge(fd int) error {
	for _, opt := range [][2]int{{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}, {unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}} {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[0], sendBuffer)
		if errors.Is(err, unix.EPERM) {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[1], sendBuffer)
		}
		if err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	return nil
}

// Close closes the socket.
func (c *Conn) Close() error { return c.c.Close() }

// Execute sends the batch and returns the rejected requests, as Failures in one joined error.
func (c *Conn) Execute(b *Batch) error {
	if len(b.msgs) == 0 {
		return nil
	}
	// The kernel always reports errors. Only the last request is acknowledged on success, so that
	// the acknowledgements of a large batch do not overflow the receive buffer.
	last := len(b.msgs) - 1
	b.msgs[last].Header.Flags |= netlink.Acknowledge
	sent, err := c.c.SendMessages(b.msgs)
	if err != nil {
		return fmt.Errorf("cannot send %d netlink requests: %w", len(b.msgs), err)
	}
	index := make(map[uint32]int, len(sent))
	for i, m := range sent {
		index[m.Header.Sequence] = i
	}
	var failures []error
	for {
		replies, err := c.receive()
		if err != nil {
			return err
		}
		for _, r := range replies {
			i, ours := index[r.sequence]
			if !ours || r.kind != unix.NLMSG_ERROR {
				continue
			}
			if errno, ext := r.ack(); errno != 0 {
				failures = append(failures, Failure{b.what[i].String(), errno, ext})
			}
			if i == last {
				return errors.Join(failures...)
			}
		}
	}
}
