package controller

import (
	"fmt"
	"log/slog"
	"time"

	"headgate.dev/headgate/api/agents"
)

// aheadGrace is how long a controller may be behind an agent that comes from another controller.
const aheadGrace = 5 * time.Second

// maxEpoch is the latest epoch to which agents can be taken back: an epoch is a time in seconds, and an agent in wrong hands may claim any.
const maxEpoch = 1 << 33 // the year 2242

// isBehind reports whether an agent with this fence has a later desired state than the cache, and would refuse that of the cache.
func (c *cache) isBehind(f *agents.Fence) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.GetEpoch() > c.epoch || f.GetEpoch() == c.epoch && f.GetRevision() > c.revision
}

// noteAhead records whether the agent of a host is ahead of this controller, since the stream has begun.
func (h *hub) noteAhead(l *link, since time.Time) (ahead bool) {
	ahead = h.cache.isBehind(l.hello.Fence)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, noted := h.ahead[l.host]
	switch {
	case !ahead:
		delete(h.ahead, l.host)
	case !noted && time.Since(since) > aheadGrace:
		h.ahead[l.host] = l.hello.Fence
		slog.Warn("the agent has a later desired state than this service, and refuses that of the service: take it back with \"headgate controller take-back\"", "host", l.host, "agent", fenceText(l.hello.Fence))
	}
	return ahead
}

func fenceText(f *agents.Fence) string { return fmt.Sprintf("%d/%d", f.GetEpoch(), f.GetRevision()) }

// aheadOf returns what the agent of a host has, if it is ahead of this controller; nil if it is not.
func (h *hub) aheadOf(host string) *agents.Fence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ahead[host]
}

// highestEpoch returns the highest epoch of agents that are ahead and can be taken back, 0 without one.
func (h *hub) highestEpoch() (epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.ahead {
		if f.GetEpoch() < maxEpoch {
			epoch = max(epoch, f.GetEpoch())
		}
	}
	return epoch
}
