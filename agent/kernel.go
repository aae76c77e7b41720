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

	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/internal/nl"
)

// KernelWatcher implements Kernel for the network namespace of the thread that opened it.
type KernelWatcher struct {
	notifications *netlink.Conn
	netfilter     *netlink.Conn // nil if the kernel has no netfilter
	cgroups       *watcher
	events        chan Event
	closed        chan struct{}

	mu      sync.Mutex
	pending map[Event]bool // events that are not delivered yet, each once
	wake    chan struct{}
}

// receiveBufferSize is the size of the receive buffer, enough for the notifications of 1,000 devices that are
// created at once.
const receiveBufferSize = 16 << 20

// OpenLinux subscribes to the kernel's notifications.
func OpenLinux() (*KernelWatcher, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: unix.RTMGRP_LINK | unix.RTMGRP_TC})
	if err != nil {
		return nil, fmt.Errorf("cannot subscribe to kernel notifications: %w", err)
	}
	// The filter drops other types, because 4,000 groups cause 8,000 notifications.
	filter, err := bpf.Assemble(onlyTypes(unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_DELQDISC, unix.RTM_DELTFILTER))
	if err == nil {
		err = c.SetBPF(filter)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot filter kernel notifications: %w", err)
	}
	_ = c.SetReadBuffer(receiveBufferSize) // with a smaller buffer, lost notifications cause a check of all devices
	l := &KernelWatcher{
		notifications: c, events: make(chan Event), closed: make(chan struct{}),
		pending: map[Event]bool{}, wake: make(chan struct{}, 1),
	}
	if l.cgroups, err = newWatcher(); err != nil {
		c.Close()
		return nil, err
	}
	l.netfilter = subscribeNetfilter()
	go l.deliver()
	go l.receive()
	if l.netfilter != nil {
		go l.receiveNetfilter()
	}
	go l.cgroups.receive(func() { l.report(Event{}) })
	return l, nil
}

// Close ends the subscriptions.
func (l *KernelWatcher) Close() error {
	close(l.closed)
	err := errors.Join(l.notifications.Close(), l.cgroups.close())
	if l.netfilter != nil {
		err = errors.Join(err, l.netfilter.Close())
	}
	return err
}

// report queues an event. An event that is already queued is not queued again, so that notifications
// are received from the kernel at once even while the agent is busy.
func (l *KernelWatcher) report(e Event) {
	l.mu.Lock()
	l.pending[e] = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// deliver delivers the queued events.
func (l *KernelWatcher) deliver() {
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
			case <-l.closed: // the receiver has stopped
				return
			}
		}
	}
}

// onlyTypes returns a BPF filter that accepts messages of these types. The type is two bytes at
// offset 4 (struct nlmsghdr), in the machine's byte order, and below 256.
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

func (l *KernelWatcher) receive() {
	for {
		msgs, err := l.notifications.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			l.report(Event{Lost: true}) // the socket's receive buffer overflowed
			continue
		}
		if err != nil {
			l.report(Event{Broken: err})
			return
		}
		for _, m := range msgs {
			switch m.Header.Type {
			case unix.RTM_DELQDISC, unix.RTM_DELTFILTER:
				if nl.IsOwnPort(m.Header.PID) {
					continue // replacing a qdisc also removes one
				}
				if o, err := nl.ParseObject(m.Data); err == nil {
					l.report(Event{Removed: o.Ifindex})
				}
			case unix.RTM_NEWLINK, unix.RTM_DELLINK:
				l.report(Event{})
			}
		}
	}
}

// subscribeNetfilter subscribes to changes of nftables, or returns nil: without netfilter there are
// no changes, and after another failure the periodic check finds them within a minute.
func subscribeNetfilter() *netlink.Conn {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)})
	if err != nil {
		return nil
	}
	return c
}

// receiveNetfilter reports chains and flowtables that are created or removed: each may be at the
// ingress hook of a device. A ruleset change arrives as one datagram of many messages, so a socket
// filter cannot select them.
func (l *KernelWatcher) receiveNetfilter() {
	for {
		msgs, err := l.netfilter.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			l.report(Event{Hooks: true})
			continue
		}
		if err != nil {
			return
		}
		if slices.ContainsFunc(msgs, isHookChange) {
			l.report(Event{Hooks: true})
		}
	}
}

// isHookChange reports whether a message is about a chain or flowtable, or about a removed table,
// which included all of its chains and flowtables.
func isHookChange(m netlink.Message) bool {
	switch m.Header.Type {
	case unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE,
		unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELCHAIN,
		unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWFLOWTABLE, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELFLOWTABLE:
		return true
	}
	return false
}

// Events implements Kernel.
func (l *KernelWatcher) Events() <-chan Event { return l.events }

// Watch implements Kernel.
func (l *KernelWatcher) Watch(cgroups []string) error { return l.cgroups.watch(cgroups) }

// Cgroup implements Kernel.
func (l *KernelWatcher) Cgroup(path string) (uint64, bool) {
	id, err := cgroup2.ID(path)
	return id, err == nil
}

// Devices implements Kernel.
func (l *KernelWatcher) Devices() ([]Device, error) {
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
