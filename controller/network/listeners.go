package network

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/internal/listen"
)

// listenRetry is after what time an address that cannot be used is tried again: another controller on this machine ends, or
// the address is assigned. The value is chosen for Headgate.
const listenRetry = time.Second

// ListenerStatus is an address at which switches connect.
type ListenerStatus struct {
	Address string
	TLS     bool
	// Err is why the address cannot be used, nil if it is.
	Err error
}

// listeners follow the configuration of the network.
type listeners struct {
	mu      sync.Mutex
	want    []fabric.Listener
	open    map[fabric.Listener]net.Listener
	failed  map[fabric.Listener]error
	changed chan struct{} // want has changed
}

func newListeners() listeners {
	return listeners{open: map[fabric.Listener]net.Listener{}, failed: map[fabric.Listener]error{}, changed: make(chan struct{}, 1)}
}

// set replaces the addresses.
func (l *listeners) set(want []fabric.Listener) {
	l.mu.Lock()
	l.want = want
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// follow opens and closes listeners until ctx ends, and calls accept in a goroutine for each that it opens.
func (l *listeners) follow(ctx context.Context, accept func(net.Listener, fabric.Listener)) {
	var accepting sync.WaitGroup
	defer accepting.Wait()
	defer l.reconcile(nil, nil)
	for {
		l.mu.Lock()
		want := l.want
		l.mu.Unlock()
		var again <-chan time.Time
		if !l.reconcile(want, func(one net.Listener, at fabric.Listener) {
			accepting.Go(func() { accept(one, at) })
		}) {
			again = time.After(listenRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		case <-again:
		}
	}
}

// reconcile closes the listeners that are not wanted, and opens those that are missing. It reports whether all are open.
func (l *listeners) reconcile(want []fabric.Listener, opened func(net.Listener, fabric.Listener)) (all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, one := range l.open {
		if !slices.Contains(want, at) {
			one.Close()
			delete(l.open, at)
			slog.Info("switches are no longer accepted", "address", at.Address, "tls", at.TLS)
		}
	}
	failed := l.failed
	l.failed = map[fabric.Listener]error{}
	for _, at := range want {
		if l.open[at] != nil {
			continue
		}
		one, err := listenAt(at)
		if err != nil {
			if failed[at] == nil {
				slog.Error("cannot listen for switches, trying again", "address", at.Address, "error", err)
			}
			l.failed[at] = err
			continue
		}
		l.open[at] = one
		slog.Info("accepting switches", "address", one.Addr(), "tls", at.TLS)
		opened(one, at)
	}
	return len(l.failed) == 0
}

// listenAt opens a listener. 0.0.0.0 is IPv4 alone, and :: is both.
func listenAt(at fabric.Listener) (net.Listener, error) {
	family := "tcp"
	if at.Address.Addr().Is4() {
		family = "tcp4"
	}
	l, err := net.Listen(family, at.Address.String())
	return l, listen.Remedy(err, "--openflow or listen of the network's configuration")
}

// status returns the addresses, in the order of the configuration.
func (l *listeners) status() (all []ListenerStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.want {
		one := ListenerStatus{Address: at.Address.String(), TLS: at.TLS, Err: l.failed[at]}
		if open := l.open[at]; open != nil {
			one.Address = open.Addr().String() // the port, if it is 0
		}
		all = append(all, one)
	}
	return all
}
