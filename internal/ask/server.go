package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// most is what a question has at most, in bytes.
	most = 4096
	// mostAsking ask at one time; others wait until they are accepted.
	mostAsking = 32
	// mostOfUser are of one user; more are refused.
	mostOfUser = 8
)

// Patience is for how long one side of the socket waits for the other.
const Patience = 2 * time.Second

// Question is what a program asks.
type Question struct {
	User uint32 // who asks
	Text []byte // one JSON object
	FD   int    // the descriptor that came with it, open until it is answered; -1 is none
}

// Server answers at a socket.
type Server struct {
	listener *net.UnixListener
	answer   func(Question) any

	mu     sync.Mutex
	asking map[uint32]int // by user
}

// Serve opens a socket that anybody may ask at. What answer gives is printed as JSON; see
// Failure for errors. What a killed program left at the path is replaced, and ErrTaken is that
// somebody answers there.
func Serve(path string, answer func(Question) any) (*Server, error) {
	l, err := listen(path)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, answer: answer, asking: map[uint32]int{}}
	go s.serve()
	return s, nil
}

// ErrTaken means that another program answers at the socket.
var ErrTaken = errors.New("another program answers there")

func listen(path string) (*net.UnixListener, error) {
	dir := filepath.Dir(path)
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	// Two that start at the same time must not both find a dead socket, and the second remove
	// the first's.
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	c, err := net.DialTimeout("unix", path, Patience)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, unix.ECONNREFUSED): // a killed program's
		if err := removeSocket(path); err != nil {
			return nil, err
		}
	case err == nil || errors.Is(err, unix.EAGAIN): // it answers, or is busy
		if err == nil {
			c.Close()
		}
		return nil, fmt.Errorf("the socket %s cannot be opened: %w", path, ErrTaken)
	default:
		return nil, fmt.Errorf("the socket cannot be opened: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket cannot be opened: %w", err)
	}
	// Whoever passes connections gets there, whatever the umask is.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// makeDirs makes those that are missing, for everybody to pass.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// removeSocket removes nothing else: a connection to a file is refused, too.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket, and is left alone: choose another path", path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	return err
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
			time.Sleep(Patience)
			continue
		}
		go func() {
			defer func() { c.Close(); <-asking }()
			c.SetDeadline(time.Now().Add(Patience))
			out := s.one(c)
			c.SetDeadline(time.Now().Add(Patience)) // to answer may have taken as long
			// Who goes away does not want the answer.
			json.NewEncoder(c).Encode(out)
		}()
	}
}

func (s *Server) one(c *net.UnixConn) any {
	user, err := peer(c)
	if err != nil {
		return FailureOf(err)
	}
	leave, ok := s.enter(user)
	if !ok {
		return FailureOf(fmt.Errorf("the user %d asks more than %d things at a time: try again", user, mostOfUser))
	}
	defer leave()
	text, fd, err := receive(c)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return FailureOf(err)
	}
	return s.answer(Question{user, text, fd})
}

// enter counts a user who asks; false is that enough of theirs do.
func (s *Server) enter(user uint32) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user != 0 && s.asking[user] >= mostOfUser {
		return nil, false
	}
	s.asking[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asking[user]--; s.asking[user] == 0 {
			delete(s.asking, user)
		}
	}, true
}

// receive reads a question, and the descriptor that comes with it; -1 is none.
func receive(c *net.UnixConn) (text []byte, fd int, err error) {
	// There is room for one descriptor: CmsgSpace(4) has it for two.
	text, beside := make([]byte, most), make([]byte, unix.CmsgLen(4))
	n, m, flags, _, err := c.ReadMsgUnix(text, beside)
	if err != nil {
		return nil, -1, fmt.Errorf("the request cannot be read: %w", err)
	}
	fd, err = descriptor(beside[:m])
	switch {
	case err != nil:
		return nil, fd, fmt.Errorf("the request's descriptor cannot be read: %w", err)
	case flags&unix.MSG_CTRUNC != 0: // the kernel has kept the others to itself
		return nil, fd, errors.New("more than one descriptor came with the request: pass one")
	}
	return text[:n], fd, nil
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
