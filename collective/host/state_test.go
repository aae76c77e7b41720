package host

import (
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/unit"
)

// The bytes that a connection sent before it was in the set do not count for its rate.
func TestFirstRate(t *testing.T) {
	s, err := newSet(collective.Policy{Name: "db", Cgroup: "/"})
	if err != nil {
		t.Fatal(err)
	}
	m := s.addConnection(&sockops.Connection{ID: 1})
	for i, c := range []struct {
		rounds uint32
		acked  uint64
		want   unit.Rate
	}{{0, 0, 0}, {1, 1e9, 0}, {2, 1e9 + 1e6, 8 * unit.Mbit}} {
		m.Rounds, m.Acked = c.rounds, c.acked
		s.rates(time.Duration(i+1) * time.Second)
		if m.rate.newest != c.want {
			t.Errorf("after %d s: %v, want %v", i+1, m.rate.newest, c.want)
		}
	}
}

// Retransmissions of a connection before it was in the set do not count for the set.
func TestFirstRetransmits(t *testing.T) {
	s, err := newSet(collective.Policy{Name: "db", Cgroup: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []sockops.Connection{
		{},
		{Rounds: 1, Segments: 1e6, Retransmits: 5e5},
		{Rounds: 2, Segments: 1e6 + 100, Retransmits: 5e5 + 10},
	} {
		c.ID = 1
		s.observe(&c)
	}
	if got := s.part(partKey{}).state().Resent; got != 0.1 {
		t.Errorf("the retransmitted fraction is %v, want 0.1", got)
	}
}
