package nl

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries is how often a dump that was overtaken by a change is asked again.
const dumpTries = 20

// Dump asks for a list and gives the payload of each answer. A list that changed
// while it was read is read again.
func (c *Conn) Dump(what string, typ uint16, payload []byte) ([][]byte, error) {
	for range dumpTries {
		out, whole, err := c.dump(typ, payload)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", what, err)
		}
		if whole {
			return out, nil
		}
	}
	return nil, fmt.Errorf("cannot list %s: they keep changing", what)
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
				if errno, _ := m.acknowledgement(); errno != 0 {
					return nil, false, errno
				}
				return out, whole, nil
			case unix.NLMSG_ERROR:
				errno, ext := m.acknowledgement()
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
