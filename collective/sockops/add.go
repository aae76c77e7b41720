package sockops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/internal/thread"
)

// Errors of AddConnection.
var (
	ErrNoConnection = errors.New("not a TCP connection")
	ErrNotOpen      = errors.New("connection is not established")
	ErrFull         = errors.New("table of connections is full")
)

// socketData is struct held of sockops.c.
type socketData struct {
	Slot, Version, Pace    uint32
	Paced, Clamped, Joined uint8
	_                      uint8
}

// joinedLate is JOINED_LATE of sockops.c.
const joinedLate = 2

// AddConnection adds the connection of a descriptor to a set, if it is in none; set is the set
// that it is in. A configured weight is stored with it. It needs Linux 6.13, and returns
// ErrNoJoin on earlier versions.
func (t *Table) AddConnection(fd int, to uint32, weight float64) (id collective.ID, set uint32, err error) {
	cookie, err := cookie(fd)
	if err != nil {
		return 0, 0, err
	}
	id = collective.ID(cookie)
	var h socketData
	switch err := t.connections.Lookup(uint32(fd), &h); {
	case err == nil:
		s := &t.all[h.Slot]
		if s.Set == NoSet {
			s.Set = to
		}
		if s.Set == to {
			s.Asked, s.Weight = joined, weight
		}
		t.lookNext(int(h.Slot))
		return id, s.Set, nil
	case !errors.Is(err, ebpf.ErrKeyNotExist):
		return 0, 0, err
	}
	local, remote, err := ends(fd)
	if err != nil {
		return 0, 0, err
	}
	if err := t.unused.LookupAndDelete(nil, &h.Slot); errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, 0, ErrFull
	} else if err != nil {
		return 0, 0, err
	}
	giveBack := func(why error) error {
		return errors.Join(why, ignore(t.connections.Delete(uint32(fd)), ebpf.ErrKeyNotExist), t.unused.Update(nil, h.Slot, ebpf.UpdateAny))
	}
	h.Joined = joinedLate
	s := &t.all[h.Slot]
	*s = slot{BegunNs: uint64(Now()), Set: to, Asked: joining, Weight: weight, LocalPort: uint32(local.port), RemotePort: uint32(remote.port), Local: local.words, Remote: remote.words}
	if err := t.connections.Update(uint32(fd), &h, ebpf.UpdateNoExist); err != nil {
		return 0, 0, giveBack(err)
	}
	// Set the cookie before the callbacks are enabled, so that the connection's end is
	// not missed.
	atomic.StoreUint64(&s.Cookie, cookie)
	err = t.enableCallbacksIn(fd)
	if err == nil {
		err = t.connections.Lookup(uint32(fd), &h)
	}
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist): // it ended, and its slot is free again
		return 0, 0, ErrNotOpen
	case err == nil && atomic.LoadUint32(&s.Asked) == joined:
		t.lookNext(int(h.Slot))
		return id, to, nil
	case err == nil:
		err = ErrNoJoin
		if i, e := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO); e == nil && i.State != tcpEstablished && i.State != tcpCloseWait {
			err = ErrNotOpen
		}
	}
	atomic.StoreUint64(&s.Cookie, 0)
	return 0, 0, giveBack(err)
}

// TCP states of include/net/tcp_states.h.
const tcpEstablished, tcpCloseWait = 1, 8

func ignore(err, this error) error {
	if errors.Is(err, this) {
		return nil
	}
	return err
}

// cookie returns the socket cookie of a TCP connection.
func cookie(fd int) (uint64, error) {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil || protocol != unix.IPPROTO_TCP {
		return 0, ErrNoConnection
	}
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
}

// end is one end of a connection, as in a slot.
type end struct {
	words [4]uint32
	port  int
}

func ends(fd int) (local, remote end, err error) {
	l, err := unix.Getsockname(fd)
	if err != nil {
		return local, remote, err
	}
	r, err := unix.Getpeername(fd)
	if errors.Is(err, unix.ENOTCONN) {
		return local, remote, ErrNotOpen
	}
	if err != nil {
		return local, remote, err
	}
	return endOf(l), endOf(r), nil
}

func endOf(a unix.Sockaddr) end {
	words := func(b [16]byte) (w [4]uint32) {
		for i := range w {
			w[i] = binary.NativeEndian.Uint32(b[4*i:])
		}
		return w
	}
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		b := [16]byte{10: 0xff, 11: 0xff}
		copy(b[12:], a.Addr[:])
		return end{words(b), a.Port}
	case *unix.SockaddrInet6:
		return end{words(a.Addr), a.Port}
	}
	return end{}
}

// callbackEnabler is the program that enables the callbacks of connections that join.
type callbackEnabler struct {
	*ebpf.Collection
	*link.Iter
}

func (a *callbackEnabler) Close() {
	a.Iter.Close()
	a.Collection.Close()
}

// enableCallbacks runs that program for the connections of this thread's network namespace.
func (t *Table) enableCallbacks() error {
	if t.enabler == nil {
		c, err := t.load(Set{}, "headgate_asked")
		if err != nil {
			return fmt.Errorf("cannot load the program that finds the connection: %w", err)
		}
		l, err := link.AttachIter(link.IterOptions{Program: c.Programs["headgate_asked"]})
		if err != nil {
			c.Close()
			return err
		}
		t.enabler = &callbackEnabler{c, l}
	}
	return run(t.enabler.Iter)
}

// enableCallbacksIn enables the callbacks of connections that join, in the network namespace of fd's
// connection.
func (t *Table) enableCallbacksIn(fd int) error {
	namespace, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("cannot find the network namespace of the connection: %w", err)
	}
	defer unix.Close(namespace)
	return thread.RunOnce(func() error {
		if err := unix.Setns(namespace, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot enter the network namespace of the connection: %w", err)
		}
		return t.enableCallbacks()
	})
}

// completeJoins completes calls of AddConnection during which an earlier process was killed.
func (t *Table) completeJoins() error {
	begun := func(s *slot) bool { return s.Cookie != 0 && s.Asked == joining }
	if !slices.ContainsFunc(t.all, func(s slot) bool { return begun(&s) }) {
		return nil
	}
	if err := forEachNamespace(t.enableCallbacks); err != nil {
		return err
	}
	for i := range t.all {
		s := &t.all[i]
		if !begun(s) {
			continue
		}
		// It ended in the meantime, which no program noticed.
		atomic.StoreUint64(&s.Cookie, 0)
		if err := t.unused.Update(nil, uint32(i), ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}
