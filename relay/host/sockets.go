package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sockets are the listening sockets of an agent. They stay open while a process that takes over may need them.
type sockets struct{ all []*socket }

type socket struct {
	// key is the network and the configured address.
	key  string
	file *os.File // a duplicate of the listener's descriptor
	used bool     // by a listener of this process
}

// listen returns a listener: of the socket of the former process, or else of a new one.
func (s *sockets) listen(ctx context.Context, network, address string, control func(network, address string, raw syscall.RawConn) error) (net.Listener, error) {
	key := network + " " + address
	n := slices.IndexFunc(s.all, func(one *socket) bool { return one.key == key && !one.used })
	if n < 0 {
		l, err := (&net.ListenConfig{Control: control}).Listen(ctx, network, address)
		if errors.Is(err, unix.EADDRINUSE) && s.hasPort(address) {
			return nil, fmt.Errorf("the process that is replaced listens on %s at an address that overlaps: restart the agent instead", address)
		}
		if err != nil {
			return nil, err
		}
		file, err := duplicate(l)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		s.all = append(s.all, &socket{key, file, true})
		return l, nil
	}
	l, err := net.FileListener(s.all[n].file)
	if err != nil {
		return nil, err
	}
	if control != nil { // the socket had another purpose perhaps
		raw, err := l.(syscall.Conn).SyscallConn()
		if err == nil {
			err = control(network, address, raw)
		}
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	s.all[n].used = true
	return l, nil
}

// hasPort reports whether there is a socket with the port of an address.
func (s *sockets) hasPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && slices.ContainsFunc(s.all, func(one *socket) bool { return !one.used && strings.HasSuffix(one.key, ":"+port) })
}

// duplicate returns a duplicate of a listener's descriptor. Its File method would make the socket blocking, for all
// duplicates.
func duplicate(l net.Listener) (*os.File, error) {
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	err = raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), l.Addr().String()), nil
}

// keys returns the keys of all sockets, in their order.
func (s *sockets) keys() (all []string) {
	for _, one := range s.all {
		all = append(all, one.key)
	}
	return all
}

// released tells that the listeners of this process were closed.
func (s *sockets) released() {
	for _, one := range s.all {
		one.used = false
	}
}

// retain closes the sockets that are not kept. A socket on which no process accepts would leave clients without an
// answer.
func (s *sockets) retain(keep func(*socket) bool) {
	s.all = slices.DeleteFunc(s.all, func(one *socket) bool {
		if keep(one) {
			return false
		}
		one.file.Close()
		return true
	})
}

func (s *sockets) close() { s.retain(func(*socket) bool { return false }) }
