package nl

import (
	"errors"
	"fmt"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Batch is a list of rtnetlink requests that go to the kernel in one sendmsg.
//
// The kernel works through all of them inside that one system call, and a
// signal is only looked at when the call returns (net/netlink/af_netlink.c,
// netlink_rcv_skb; net/core/rtnetlink.c takes rtnl_lock uninterruptibly). So a
// batch is what a process that is killed with -9 either did or did not do.
// Requests are independent: one that fails does not stop the later ones.
type Batch struct {
	msgs []netlink.Message
	what []task
}

// task says what a request does. It becomes a sentence only when one fails: 16,000
// of them took 10 ms.
type task struct {
	words string
	of    Handle // 0 if the words say all
}

func (t task) String() string {
	if t.of == 0 {
		return t.words
	}
	return t.words + " " + t.of.String()
}

// add appends a request.
func (b *Batch) add(what task, typ uint16, flags netlink.HeaderFlags, payload []byte) {
	b.msgs = append(b.msgs, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | flags},
		Data:   payload,
	})
	b.what = append(b.what, what)
}

// Len is the number of requests.
func (b *Batch) Len() int { return len(b.msgs) }

// Failure is a request that the kernel refused.
type Failure struct {
	What  string
	Errno error
	Ext   string // the kernel's own explanation, if it gave one
}

func (f Failure) Error() string {
	if f.Ext != "" {
		return fmt.Sprintf("cannot %s: %v (%s)", f.What, f.Errno, f.Ext)
	}
	return fmt.Sprintf("cannot %s: %v", f.What, f.Errno)
}

func (f Failure) Unwrap() error { return f.Errno }

// sendBuffer holds 16,000 groups with a class and a leaf qdisc each, and both
// directions: 64,000 requests of about 200 bytes. The kernel doubles it and
// refuses larger messages (EMSGSIZE).
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
		err = raw.Control(func(fd uintptr) {
			for _, opt := range []int{unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
				if e := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, opt, sendBuffer); e != nil {
					err = os.NewSyscallError("setsockopt", e)
				}
			}
		})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot enlarge a netlink socket's buffers: %w", err)
	}
	_ = c.SetOption(netlink.ExtendedAcknowledge, true) // only for better messages
	remember(c.PID())
	return &Conn{c}, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return c.c.Close() }

// Execute sends the batch and collects what the kernel refused, as Failures in
// one joined error.
func (c *Conn) Execute(b *Batch) error {
	if len(b.msgs) == 0 {
		return nil
	}
	// Errors are always reported; a success only for the last, so that a large
	// batch does not overrun the receive buffer with acknowledgements.
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
			if errno, ext := r.acknowledgement(); errno != 0 {
				failures = append(failures, Failure{b.what[i].String(), errno, ext})
			}
			if i == last {
				return errors.Join(failures...)
			}
		}
	}
}
