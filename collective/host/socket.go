package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// socketDir has a socket for each program that runs.
const socketDir = "/run/headgate/collective"

func socketPath(instance string) string { return filepath.Join(socketDir, instance+".sock") }

// mostAsking ask at one time; others wait until they are accepted.
const mostAsking = 32

// patience is for how long one side of the socket waits for the other.
const patience = 2 * time.Second

// request is what is asked for at the socket, as one JSON object: with the descriptor of a
// connection beside it to join a set, or without for what the sets are doing.
type request struct {
	Join   string  `json:"join,omitempty"` // a set
	Weight float64 `json:"weight,omitempty"`
}

// answer is one JSON object as well.
type answer struct {
	Error string `json:"error,omitempty"`
	// Denied: it is for another user.
	Denied bool    `json:"denied,omitempty"`
	States []State `json:"states,omitempty"`
}

// denied is an answer to a user who may not: an os.ErrPermission.
type denied string

func (d denied) Error() string        { return string(d) }
func (d denied) Is(target error) bool { return target == os.ErrPermission }

// Server answers at the socket of a Host.
type Server struct {
	host     *Host
	listener *net.UnixListener
}

// Serve opens the socket of a program. Anybody may ask to join; what the sets are doing is
// for root. What a killed program left there is replaced: only one of a name runs at a time
// (sockops.Open).
func (h *Host) Serve(instance string) (*Server, error) {
	// Whoever passes connections gets there, whatever the umask is.
	for _, dir := range []string{filepath.Dir(socketDir), socketDir} {
		if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
			return nil, err
		}
	}
	path := socketPath(instance)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot be asked: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Server{h, l}
	go s.serve()
	return s, nil
}

// Close takes the socket away.
func (s *Server) Close() error { return s.listener.Close() }

func (s *Server) serve() {
	asking := make(chan struct{}, mostAsking)
	for {
		asking <- struct{}{}
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files, say
			<-asking
			time.Sleep(patience)
			continue
		}
		go func() {
			defer func() { c.Close(); <-asking }()
			c.SetDeadline(time.Now().Add(patience))
			// Who goes away does not want the answer.
			json.NewEncoder(c).Encode(s.answer(c))
		}()
	}
}

func (s *Server) answer(c *net.UnixConn) answer {
	r, fd, err := receive(c)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	user, err := peer(c)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var out answer
	switch {
	case r.Join != "":
		var refused error
		if err = s.host.between(func() { refused = s.host.adopt(user, r, fd) }); err == nil {
			err = refused
		}
	case user != 0:
		err = denied("what the sets are doing is for root")
	default:
		out.States, err = s.States()
	}
	if err != nil {
		out.Error, out.Denied = err.Error(), errors.Is(err, os.ErrPermission)
	}
	return out
}

// States is what the sets are doing.
func (s *Server) States() (states []State, err error) {
	err = s.host.between(func() { states = s.host.State() })
	return states, err
}

// between has something done between two looks.
func (h *Host) between(do func()) error {
	done := make(chan struct{})
	select {
	case h.asks <- func() { defer close(done); do() }:
		<-done
		return nil
	case <-time.After(patience):
		return errors.New("the program is busy, or ends: try again")
	}
}

// receive reads a request, and the descriptor that comes with it; -1 is none.
func receive(c *net.UnixConn) (r request, fd int, err error) {
	// There is room for one descriptor: CmsgSpace(4) has it for two.
	text, beside := make([]byte, 4096), make([]byte, unix.CmsgLen(4))
	n, m, flags, _, err := c.ReadMsgUnix(text, beside)
	if err != nil {
		return r, -1, fmt.Errorf("the request cannot be read: %w", err)
	}
	fd, err = descriptor(beside[:m])
	switch {
	case err != nil:
		return r, fd, fmt.Errorf("the request's descriptor cannot be read: %w", err)
	case flags&unix.MSG_CTRUNC != 0: // the kernel has kept the others to itself
		return r, fd, errors.New("more than one descriptor came with the request: pass one")
	}
	if err := json.Unmarshal(text[:n], &r); err != nil {
		return r, fd, fmt.Errorf("the request is no JSON object, such as {\"join\": \"db\"}: %w", err)
	}
	return r, fd, nil
}

func descriptor(beside []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(beside)
	if err != nil || len(messages) == 0 {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1, err
	}
	return fds[0], nil
}

// peer is the user at the other end.
func peer(c *net.UnixConn) (user uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var got *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return got.Uid, nil
}
