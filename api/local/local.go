package local

import (
	"errors"
	"fmt"
	"syscall"

	"headgate.dev/headgate/internal/ask"
)

// Socket is the default path of the agent's socket.
const Socket = "/run/headgate/agent.sock"

// ErrNotRunning means that no agent is listening.
var ErrNotRunning = ask.ErrNotListening

// Request is one JSON object, sent with a connection's descriptor. Exactly one of Assign and
// Unassign is set.
type Request struct {
	// Assign is the group to which the connection is assigned: its path ("shop/backup"), or its
	// last name if that is unique.
	Assign string `json:"assign,omitempty"`
	// Unassign ends the assignment, so that the rules apply to the connection again.
	Unassign bool `json:"unassign,omitempty"`
	// Dev is the device; "" means all devices of the agent that have the group.
	Dev string `json:"dev,omitempty"`
}

// Response is the response, also one JSON object.
type Response struct {
	ask.ErrorResponse
	// Connection is the connection as the agent read it from the descriptor: "tcp 10.0.0.1:443
	// 10.0.0.2:55000".
	Connection string `json:"connection,omitempty"`
	// Group is the path of the connection's group, "" after Unassign, on each of Devs.
	Group string   `json:"group,omitempty"`
	Devs  []string `json:"devs,omitempty"`
}

// Agent is the agent at a socket; the zero value is at Socket.
type Agent struct{ Path string }

// Assign assigns a connection to a group, on one device or, if dev is "", on all devices that have
// the group. The connection is, for example, a *net.TCPConn; for a *tls.Conn use the result of
// NetConn. The error is an os.ErrPermission if the program's user has no permission.
func (a Agent) Assign(c syscall.Conn, group, dev string) (Response, error) {
	return a.with(c, Request{Assign: group, Dev: dev})
}

// Unassign ends a connection's assignment. An assignment does not end by itself, even when the
// connection ends: unassign a connection before it is closed.
func (a Agent) Unassign(c syscall.Conn, dev string) (Response, error) {
	return a.with(c, Request{Unassign: true, Dev: dev})
}

func (a Agent) with(c syscall.Conn, r Request) (out Response, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return out, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { out, failed = a.Do(r, int(fd)) })
	return out, errors.Join(err, failed)
}

// Do sends a request with a descriptor, which stays open.
func (a Agent) Do(r Request, fd int) (out Response, err error) {
	path := a.Path
	if path == "" {
		path = Socket
	}
	if err := ask.Call(path, r, &out, fd); err != nil {
		return out, fmt.Errorf("cannot query the agent at %s: %w", path, err)
	}
	return out, out.Err()
}
