package host

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// logInterval is how often a failure that goes on is logged.
const logInterval = time.Minute

// outage logs when the exit becomes unreachable on a path, and when it is reachable again: not each of the path's
// streams and tries. The exit is unreachable while no stream of the path is open.
type outage struct {
	log *slog.Logger // names the exit and the path

	mu     sync.Mutex
	open   int       // streams
	since  time.Time // of the outage; zero while there is none
	logged time.Time
	tries  int // that failed since then
}

// failed counts a stream that could not be opened, or has ended.
func (o *outage) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case o.open > 0:
		return // the status has it
	case o.since.IsZero():
		o.since = now
		o.log.Warn("exit is unreachable on this path, trying again", "error", err)
	case now.Sub(o.logged) < logInterval:
		o.tries++
		return
	default:
		o.log.Warn("exit is still unreachable on this path", "for", now.Sub(o.since).Round(time.Second), "tries", o.tries+1, "error", err)
	}
	o.logged, o.tries = now, 0
}

// opened counts a stream that is open until closed is called.
func (o *outage) opened() (closed func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	if !o.since.IsZero() {
		o.log.Info("exit is reachable again on this path", "after", time.Since(o.since).Round(time.Millisecond))
		o.since = time.Time{}
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open--
	}
}

// maxPeers is how many addresses of peers a line of a summary has.
const maxPeers = 8

// summary logs failures of peers: the first at once, and further ones together, at most once in logInterval.
type summary struct {
	mu     sync.Mutex
	logged time.Time
	count  int          // failures since then
	peers  []netip.Addr // of those
}

func (s *summary) add(log *slog.Logger, message string, peer net.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if a := addrPort(peer).Addr(); !slices.Contains(s.peers, a) && len(s.peers) < maxPeers {
		s.peers = append(s.peers, a)
	}
	if now := time.Now(); now.Sub(s.logged) >= logInterval {
		log.Warn(message, "count", s.count, "peers", s.peers, "error", err)
		s.logged, s.count, s.peers = now, 0, nil
	}
}
