package agent

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"headgate/internal/cgroup2"
	"headgate/internal/nl"
)

// Linux is the kernel, in the network namespace of the thread that opened it.
type Linux struct {
	notifications *netlink.Conn
	netfilter     *netlink.Conn // nil if the kernel has none
	cgroups       *watcher
	events        chan Event
	closed        chan struct{}

	mu      sync.Mutex
	pending map[Event]bool // what was not told yet, each once
	wake    chan struct{}
}

// storm is room for the notifications of a thousand devices that come at once.
const storm = 16 << 20

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
	_ = c.SetReadBuffer(storm) // with less, what is lost is looked for
	l := &Linux{
		notifications: c, events: make(chan Event), closed: make(chan struct{}),
		pending: map[Event]bool{}, wake: make(chan struct{}, 1),
	}
	if l.cgroups, err = newWatcher(); err != nil {
		c.Close()
		return nil, err
	}
	l.netfilter = subscribeNetfilter()
	go l.pass()
	go l.receive()
	if l.netfilter != nil {
		go l.receiveNetfilter()
	}
	go l.cgroups.receive(func() { l.tell(Event{}) })
	return l, nil
}

// Close ends the subscriptions.
func (l *Linux) Close() error {
	close(l.closed)
	err := errors.Join(l.notifications.Close(), l.cgroups.close())
	if l.netfilter != nil {
		err = errors.Join(err, l.netfilter.Close())
	}
	return err
}

// tell is that something happened. What is told already and not heard yet is not told twice, so that
// notifications are taken from the kernel as they come, also while nobody listens.
func (l *Linux) tell(e Event) {
	l.mu.Lock()
	l.pending[e] = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is on its way
	}
}

// pass passes on what is told.
func (l *Linux) pass() {
	for {
		select {
		case <-l.wake:
		case <-l.closed:
			return
		}
		l.mu.Lock()
		now := l.pending
		l.pending = map[Event]bool{}
		l.mu.Unlock()
		for e := range now {
			select {
			case l.events <- e:
			case <-l.closed: // nobody listens any more
				return
			}
		}
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
				if nl.Own(m.Header.PID) {
					continue // to replace a queue is to remove one
				}
				if o, err := nl.ParseObject(m.Data); err == nil {
					l.tell(Event{Removed: o.Ifindex})
				}
			case unix.RTM_NEWLINK, unix.RTM_DELLINK:
				l.tell(Event{})
			}
		}
	}
}

// subscribeNetfilter asks to be told of changes of nftables. Without netfilter there
// are none, and what else may fail only delays what a look finds within a minute.
func subscribeNetfilter() *netlink.Conn {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)})
	if err != nil {
		return nil
	}
	return c
}

// receiveNetfilter tells of chains and flowtables that came or went: each may be at
// the ingress of a device. A change of a ruleset comes as one datagram of many
// messages, so that no filter of the socket can choose among them.
func (l *Linux) receiveNetfilter() {
	for {
		msgs, err := l.netfilter.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			l.tell(Event{Hooks: true})
			continue
		}
		if err != nil {
			return
		}
		if slices.ContainsFunc(msgs, aboutHooks) {
			l.tell(Event{Hooks: true})
		}
	}
}

// aboutHooks knows a message of a chain or flowtable, or of a table that went with all its own.
func aboutHooks(m netlink.Message) bool {
	switch m.Header.Type {
	case unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE,
		unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELCHAIN,
		unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWFLOWTABLE, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELFLOWTABLE:
		return true
	}
	return false
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
	c, err := nl.Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	out := make([]Device, len(links))
	for i, l := range links {
		out[i] = Device(l)
	}
	return out, nil
}
