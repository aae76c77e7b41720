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
	// maxRequestSize is the maximum size of a request in bytes.
	maxRequestSize = 4096
	// maxConcurrent is the maximum number of concurrent requests of all users but root, maxConcurrentPerUser that of one of them; more are rejected. Root has
	// maxConcurrentRoot of its own, so that no user can keep it out.
	maxConcurrent, maxConcurrentPerUser, maxConcurrentRoot = 32, 8, 32
	// maxClosing is the number of descriptors that are closed at the same time. A socket with SO_LINGER makes close wait for data that cannot leave, for as long as its user
	// has set.
	maxClosing = 64
)

// Timeout is how long one side of the socket waits for the other.
const Timeout = 2 * time.Second

// Request is a request.
type Request struct {
	User uint32 // the client's user
	Text []byte // one JSON object
	FD   int    // the descriptor that came with the request, open until it is answered; -1 if there is none
}

// Server answers requests at a socket.
type Server struct {
	listener *net.UnixListener
	answer   func(Request) any

	mu             sync.Mutex
	activeRequests map[uint32]int // by user
	others         int            // requests of all users but root
	closing        chan struct{}
}

// Serve opens a socket that is accessible to all users. The result of answer is encoded as JSON;
// see Failure for errors. A socket file that a killed program left at the path is replaced. The
// error is ErrInUse if another program is listening at the path.
func Serve(path string, answer func(Request) any) (*Server, error) {
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the socket: %w", err)
	}
	s := &Server{listener: l, answer: answer, activeRequests: map[uint32]int{}, closing: make(chan struct{}, maxClosing)}
	go s.serve()
	return s, nil
}

// ErrInUse means that another program is listening on the socket.
var ErrInUse = errors.New("another program is listening on it")

func listen(path string) (*net.UnixListener, error) {
	dir := filepath.Dir(path)
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	// The lock prevents that of two programs that start at the same time, and find a stale socket,
	// the second removes the socket of the first.
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	c, err := net.DialTimeout("unix", path, Timeout)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, unix.ECONNREFUSED): // left by a killed program
		if err := removeSocket(path); err != nil {
			return nil, err
		}
	case err == nil || errors.Is(err, unix.EAGAIN): // a program is listening, or its backlog is full
		if err == nil {
			c.Close()
		}
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	default:
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// All users may connect, whatever the umask is.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// makeDirs creates the missing directories, with search permission for all users.
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

// removeSocket removes a stale socket, but no other kind of file: connections to a regular file are
// refused, too.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: choose another path", path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	return err
}

// Close closes and removes the socket.
func (s *Server) Close() error { return s.listener.Close() }

func (s *Server) serve() {
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example too many open files
			time.Sleep(Timeout)
			continue
		}
		user, leave, err := s.admit(c)
		if err != nil {
			s.reply(c, NewErrorResponse(err))
			continue
		}
		go func() {
			defer leave()
			c.SetReadDeadline(time.Now().Add(Timeout))
			s.reply(c, s.handle(c, user))
		}()
	}
}

// reply sends an answer, and closes the connection.
func (s *Server) reply(c *net.UnixConn, answer any) {
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(Timeout))
	// Write errors are ignored: the client has disconnected.
	json.NewEncoder(c).Encode(answer)
}

// admit returns the user of a connection, and counts its request until leave is called.
func (s *Server) admit(c *net.UnixConn) (user uint32, leave func(), err error) {
	if user, err = peer(c); err != nil {
		return 0, nil, err
	}
	leave, err = s.acquire(user)
	return user, leave, err
}

func (s *Server) handle(c *net.UnixConn, user uint32) any {
	text, fd, err := receive(c)
	if fd >= 0 {
		defer s.closeLater(fd)
	}
	if err != nil {
		return NewErrorResponse(err)
	}
	return s.answer(Request{user, text, fd})
}

// closeLater closes a descriptor without waiting for it.
func (s *Server) closeLater(fd int) {
	select {
	case s.closing <- struct{}{}:
		go func() {
			defer func() { <-s.closing }()
			unix.Close(fd)
		}()
	default:
		// So many are closed already that wait for their data. This one gives its data up; it is not a socket if that fails.
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		unix.Close(fd)
	}
}

// acquire counts a user's request.
func (s *Server) acquire(user uint32) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case user == 0 && s.activeRequests[user] >= maxConcurrentRoot:
		return nil, fmt.Errorf("root has more than %d concurrent requests: retry later", maxConcurrentRoot)
	case user != 0 && s.activeRequests[user] >= maxConcurrentPerUser:
		return nil, fmt.Errorf("user %d has more than %d concurrent requests: retry later", user, maxConcurrentPerUser)
	case user != 0 && s.others >= maxConcurrent:
		return nil, fmt.Errorf("there are more than %d concurrent requests: retry later", maxConcurrent)
	}
	s.count(user, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(user, -1)
	}, nil
}

// count adds to the requests of a user. s.mu must be held.
func (s *Server) count(user uint32, n int) {
	if s.activeRequests[user] += n; s.activeRequests[user] == 0 {
		delete(s.activeRequests, user)
	}
	if user != 0 {
		s.others += n
	}
}

// receive reads a request and its descriptor; fd is -1 if there is none.
func receive(c *net.UnixConn) (text []byte, fd int, err error) {
	// The buffer is for one descriptor: CmsgSpace(4) would be large enough for two.
	text, beside := make([]byte, maxRequestSize), make([]byte, unix.CmsgLen(4))
	n, m, flags, _, err := c.ReadMsgUnix(text, beside)
	if err != nil {
		return nil, -1, fmt.Errorf("cannot read the request: %w", err)
	}
	fd, err = descriptor(beside[:m])
	switch {
	case err != nil:
		return nil, fd, fmt.Errorf("cannot read the request's file descriptor: %w", err)
	case flags&unix.MSG_CTRUNC != 0: // the kernel has closed the others
		return nil, fd, errors.New("the request has more than one file descriptor: pass one")
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

// peer returns the user of the client.
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
