package nl

import (
	"fmt"

	"github.com/mdlayher/netlink"
)

// Dump asks for a list and gives the payload of each answer.
func (c *Conn) Dump(what string, typ uint16, payload []byte) ([][]byte, error) {
	msgs, err := c.c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.Dump},
		Data:   payload,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", what, err)
	}
	out := make([][]byte, len(msgs))
	for i, m := range msgs {
		out[i] = m.Data
	}
	return out, nil
}
