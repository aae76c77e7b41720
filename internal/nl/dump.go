package nl

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// maxDumpAttempts is how often a dump that was interrupted by a change is repeated.
const maxDumpAttempts = 20

// Dump requests a list and returns the payload of each entry. A list that changed during the dump
// is requested again.
func (c *Conn) Dump(what string, typ uint16, payload []byte) ([][]byte, error) {
	for range maxDumpAttempts {
		out, whole, err := c.dump(typ, payload)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", what, err)
		}
		if whole {
			return out, nil
		}
	}
	return nil, fmt.Errorf("cannot list %s: the list keeps changing", what)
}

func (c *Conn) dump(typ uint16, payload []byte) (out [][]byte, whole bool, err error) {
	sent, err := c.c.Send(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.Dump}, Data: payload,
	})
	if err != nil {
		return nil, false, err
	}
	whole = true
	for {
		messages, err := c.receive()
		if err != nil {
			return nil, false, err
		}
		for _, m := range messages {
			if m.sequence != sent.Header.Sequence {
				continue
			}
			whole = whole && m.flags&netlink.DumpInterrupted == 0
			switch m.kind {
			case unix.NLMSG_DONE:
				if errno, _ := m.ack(); errno != 0 {
					return nil, false, errno
				}
				return out, whole, nil
			case unix.NLMSG_ERROR:
				errno, ext := m.ack()
				if ext != "" {
					return nil, false, fmt.Errorf("%w (%s)", errno, ext)
				}
				return nil, false, errno
			default:
				out = append(out, m.payload())
			}
		}
	}
}
