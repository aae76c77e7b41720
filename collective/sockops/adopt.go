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

	"headgate/collective"
	"headgate/internal/thread"
)

// Errors of Adopt.
var (
	ErrNoConnection = errors.New("it is no TCP connection")
	ErrNotOpen      = errors.New("the connection is not established")
	ErrFull         = errors.New("there is no room for more connections")
)

// held is struct held of sockops.c.
type held struct {
	Slot, Version, Pace    uint32
	Paced, Clamped, Joined uint8
	_                      uint8
}

// Adopt takes the connection of a descriptor into a set, if it is in none: set is the one
// that it is in. A weight by hand is kept with it. It needs Linux 6.13; before that it is
// ErrNoJoin.
func (t *Table) Adopt(fd int, to uint32, weight float64) (id collective.ID, set uint32, err error) {
	cookie, err := cookie(fd)
	if err != nil {
		return 0, 0, err
	}
	id = collective.ID(cookie)
	var h held
	switch err := t.connections.Lookup(uint32(fd), &h); {
	case err == nil:
		s := &t.all[h.Slot]
		if s.Set == NoSet {
			s.Set = to
		}
		if s.Set == to {
			s.Asked, s.Weight = asked, weight
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
	h.Joined = 1
	s := &t.all[h.Slot]
	*s = slot{BegunNs: uint64(Now()), Set: to, Asked: askedNow, Weight: weight, LocalPort: uint32(local.port), RemotePort: uint32(remote.port), Local: local.words, Remote: remote.words}
	if err := t.connections.Update(uint32(fd), &h, ebpf.UpdateNoExist); err != nil {
		return 0, 0, giveBack(err)
	}
	// Before its callbacks are on, so that its end is not missed.
	atomic.StoreUint64(&s.Cookie, cookie)
	err = t.listen(fd)
	if err == nil {
		err = t.connections.Lookup(uint32(fd), &h)
	}
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist): // it ended, and has given the slot back
		return 0, 0, ErrNotOpen
	case err == nil && atomic.LoadUint32(&s.Asked) == asked:
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

// States of include/net/tcp_states.h.
const tcpEstablished, tcpCloseWait = 1, 8

func ignore(err, this error) error {
	if errors.Is(err, this) {
		return nil
	}
	return err
}

// cookie is that of a TCP connection.
func cookie(fd int) (uint64, error) {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil || protocol != unix.IPPROTO_TCP {
		return 0, ErrNoConnection
	}
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
}

// end is one of a connection's, as in a slot.
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

// asking is the program that asks for the callbacks of connections that were asked for.
type asking struct {
	*ebpf.Collection
	*link.Iter
}

func (a *asking) Close() {
	a.Iter.Close()
	a.Collection.Close()
}

// ask has it visit the connections of this thread's network namespace.
func (t *Table) ask() error {
	if t.asked == nil {
		c, err := t.load(Set{}, "headgate_asked")
		if err != nil {
			return fmt.Errorf("cannot load the program that finds the connection: %w", err)
		}
		l, err := link.AttachIter(link.IterOptions{Program: c.Programs["headgate_asked"]})
		if err != nil {
			c.Close()
			return err
		}
		t.asked = &asking{c, l}
	}
	return run(t.asked.Iter)
}

// listen asks for the callbacks of connections that were asked for, in the network namespace
// of one.
func (t *Table) listen(fd int) error {
	namespace, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("cannot find its network namespace: %w", err)
	}
	defer unix.Close(namespace)
	return thread.Throwaway(func() error {
		if err := unix.Setns(namespace, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot enter its network namespace: %w", err)
		}
		return t.ask()
	})
}

// finishJoining does what a process had not done yet as it was killed within Adopt.
func (t *Table) finishJoining() error {
	begun := func(s *slot) bool { return s.Cookie != 0 && s.Asked == askedNow }
	if !slices.ContainsFunc(t.all, func(s slot) bool { return begun(&s) }) {
		return nil
	}
	if err := everyNamespace(t.ask); err != nil {
		return err
	}
	for i := range t.all {
		s := &t.all[i]
		if !begun(s) {
			continue
		}
		// It ended meanwhile, and nobody was told.
		atomic.StoreUint64(&s.Cookie, 0)
		if err := t.unused.Update(nil, uint32(i), ebpf.UpdateAny); err != nil {
			return err
		}
	}
	return nil
}
