package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"headgate.dev/headgate/internal/ask"
)

// ErrNotRunning is the error if no agent with the name is running.
var ErrNotRunning = ask.ErrNotListening

// SocketsEnv is the environment variable with another directory for the sockets of agents, for several hosts on one machine: a
// host sees its own agents alone.
const SocketsEnv = "HEADGATE_RELAY_SOCKETS"

// socketDir returns the directory with a socket for each running agent: that of the system for root, and that of the
// user's session for another user, who cannot write there.
func socketDir() string {
	if dir := os.Getenv(SocketsEnv); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); os.Geteuid() != 0 && dir != "" {
		return filepath.Join(dir, "headgate", "relay")
	}
	return "/run/headgate/relay"
}

func socketPath(agent string) string { return filepath.Join(socketDir(), agent+".sock") }

// request is a request at the socket: for the status, or for the connections that have ended.
type request struct {
	Ended bool `json:"ended,omitempty"`
}

type response struct {
	ask.ErrorResponse
	Status *Status            `json:"status,omitempty"`
	Ended  []ConnectionStatus `json:"ended,omitempty"`
}

// serve answers queries and measures rates until stop is called. Without its socket, which another agent with the
// name may have, the agent does its work all the same.
func (a *Agent) serve() (stop func()) {
	server, err := ask.Serve(socketPath(a.policy.Name), a.answer)
	if err != nil {
		a.log.Warn("the status of the agent cannot be queried", "agent", a.policy.Name, "error", remedy(err))
	}
	ticker, done := time.NewTicker(rateInterval), make(chan struct{})
	go func() {
		var memory memoryReturn
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			conns, streams := 0, 0
			for _, l := range a.links() {
				c, s := l.measure()
				conns, streams = conns+c, streams+s
			}
			payloads.trim()
			if memory.observe(conns, streams) {
				debug.FreeOSMemory()
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		if server != nil {
			server.Close()
		}
		a.records.flush()
	}
}

// remedy adds to the error of a socket what to do.
func remedy(err error) error {
	switch {
	case errors.Is(err, ask.ErrInUse):
		return fmt.Errorf("%w: set another name for one of the two agents", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run the agent as root, or set XDG_RUNTIME_DIR to a directory of its user", err)
	}
	return err
}

func (a *Agent) answer(q ask.Request) any {
	var r request
	var out response
	err := json.Unmarshal(q.Text, &r)
	switch {
	case err != nil:
		err = fmt.Errorf("request is not a JSON object such as {\"ended\": true}: %w", err)
	case q.User != 0 && int(q.User) != os.Geteuid():
		err = ask.Denied("only root and the agent's user may query its status")
	case r.Ended:
		out.Ended = a.records.all()
	default:
		s := a.Status()
		out.Status = &s
	}
	out.ErrorResponse = ask.NewErrorResponse(err)
	return out
}

// Running returns the names of the agents that have a socket. A killed agent leaves its socket.
func Running() (names []string) {
	entries, _ := os.ReadDir(socketDir())
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), filepath.Ext(socketPath(""))); is {
			names = append(names, name)
		}
	}
	return names
}

// QueryStatus returns the status of an agent of this machine.
func QueryStatus(agent string) (Status, error) {
	r, err := call(agent, request{})
	if err == nil && r.Status == nil {
		err = errors.New("the agent did not report its status")
	}
	if err != nil {
		return Status{}, err
	}
	return *r.Status, nil
}

// QueryEnded returns the last connections of an agent that have ended, the oldest first.
func QueryEnded(agent string) ([]ConnectionStatus, error) {
	r, err := call(agent, request{Ended: true})
	return r.Ended, err
}

func call(agent string, q request) (r response, err error) {
	if err := ask.Call(socketPath(agent), q, &r); err != nil {
		return r, err
	}
	return r, r.Err()
}
