package agent

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	vnl "github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"headgate/internal/cgroup2"
	"headgate/internal/nl"
)

// Linux is the kernel, in the network namespace of the thread that opened it.
type Linux struct {
	notifications *netlink.Conn
	cgroups       *watcher
	events        chan Event
	closed        chan struct{}
}

// OpenLinux subscribes to what the kernel tells.
func OpenLinux() (*Linux, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: unix.RTMGRP_LINK | unix.RTMGRP_TC})
	if err != nil {
		return nil, fmt.Errorf("cannot subscribe to the kernel's notifications: %w", err)
	}
	// Only what is wanted, because 4,000 groups are 8,000 notifications.
	filter, err := bpf.Assemble(onlyTypes(unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_DELQDISC, unix.RTM_DELTFILTER))
	if err == nil {
		err = c.SetBPF(filter)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot choose among the kernel's notifications: %w", err)
	}
	l := &Linux{notifications: c, events: make(chan Event, 64), closed: make(chan struct{})}
	if l.cgroups, err = newWatcher(); err != nil {
		c.Close()
		return nil, err
	}
	go l.receive()
	go l.cgroups.receive(func() { l.tell(Event{}) })
	return l, nil
}

// Close ends the subscriptions.
func (l *Linux) Close() error {
	close(l.closed)
	return errors.Join(l.notifications.Close(), l.cgroups.close())
}

func (l *Linux) tell(e Event) {
	select {
	case l.events <- e:
	case <-l.closed: // nobody listens any more
	}
}

// onlyTypes lets messages of these types pass. The type is two bytes at offset 4
// (struct nlmsghdr), in the machine's order, and below 256.
func onlyTypes(types ...uint32) []bpf.Instruction {
	offset := uint32(4)
	if cpu.IsBigEndian {
		offset = 5
	}
	out := []bpf.Instruction{bpf.LoadAbsolute{Off: offset, Size: 1}}
	for i, t := range types {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: t, SkipTrue: uint8(len(types) - i)})
	}
	return append(out, bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: 1 << 20})
}

func (l *Linux) receive() {
	for {
		msgs, err := l.notifications.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			l.tell(Event{Lost: true}) // more came than the socket could hold
			continue
		}
		if err != nil {
			l.tell(Event{Broken: err})
			return
		}
		for _, m := range msgs {
			switch m.Header.Type {
			case unix.RTM_DELQDISC, unix.RTM_DELTFILTER:
				if o, err := nl.ParseObject(m.Data); err == nil {
					l.tell(Event{Removed: o.Ifindex})
				}
			case unix.RTM_NEWLINK, unix.RTM_DELLINK:
				l.tell(Event{})
			}
		}
	}
}

// Events is part of Kernel.
func (l *Linux) Events() <-chan Event { return l.events }

// Watch is part of Kernel.
func (l *Linux) Watch(cgroups []string) error { return l.cgroups.watch(cgroups) }

// Cgroup is part of Kernel.
func (l *Linux) Cgroup(path string) (uint64, bool) {
	id, err := cgroup2.ID(path)
	return id, err == nil
}

// Devices is part of Kernel.
func (l *Linux) Devices() ([]Device, error) {
	links, err := vnl.LinkList()
	if err != nil {
		return nil, err
	}
	out := make([]Device, len(links))
	for i, link := range links {
		a := link.Attrs()
		out[i] = Device{Index: a.Index, Name: a.Name, MTU: a.MTU, Up: a.RawFlags&unix.IFF_UP != 0}
	}
	return out, nil
}
