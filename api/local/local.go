package local

import (
	"errors"
	"fmt"
	"syscall"

	"headgate/internal/ask"
)

// Socket is where an agent listens unless it was told another path.
const Socket = "/run/headgate/agent.sock"

// ErrNotRunning means that no agent listens.
var ErrNotRunning = ask.ErrNobody

// Request is one JSON object, with a connection's descriptor beside it. One of Assign and Unassign
// is given.
type Request struct {
	// Assign is the group that the connection is to be in, by its path ("shop/backup"), or by its
	// last name where there is one such.
	Assign string `json:"assign,omitempty"`
	// Unassign gives the connection back to the rules.
	Unassign bool `json:"unassign,omitempty"`
	// Dev is the device; "" are all of the agent's that have the group.
	Dev string `json:"dev,omitempty"`
}

// Answer is one JSON object as well.
type Answer struct {
	ask.Failure
	// Connection is as the agent has read it from the descriptor: "tcp 10.0.0.1:443 10.0.0.2:55000".
	Connection string `json:"connection,omitempty"`
	// Group is the path of the group that it is in, "" after Unassign, on each of Devs.
	Group string   `json:"group,omitempty"`
	Devs  []string `json:"devs,omitempty"`
}

// Agent is one at a socket; the zero value is at Socket.
type Agent struct{ Path string }

// Assign puts a connection in a group, on one device or, if dev is "", on all that have it. The
// connection is a *net.TCPConn, say; of a *tls.Conn it is what NetConn gives. An error is an
// os.ErrPermission if the program's user may not.
func (a Agent) Assign(c syscall.Conn, group, dev string) (Answer, error) {
	return a.with(c, Request{Assign: group, Dev: dev})
}

// Unassign gives a connection back to the rules. It holds by itself until then, also when the
// connection has ended: give back what was assigned before it is closed.
func (a Agent) Unassign(c syscall.Conn, dev string) (Answer, error) {
	return a.with(c, Request{Unassign: true, Dev: dev})
}

func (a Agent) with(c syscall.Conn, r Request) (out Answer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return out, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { out, failed = a.Ask(r, int(fd)) })
	return out, errors.Join(err, failed)
}

// Ask is for who has a descriptor, which stays its own.
func (a Agent) Ask(r Request, fd int) (out Answer, err error) {
	path := a.Path
	if path == "" {
		path = Socket
	}
	if err := ask.Call(path, r, &out, fd); err != nil {
		return out, fmt.Errorf("the agent at %s cannot be asked: %w", path, err)
	}
	return out, out.Err()
}
