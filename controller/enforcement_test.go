package controller

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
)

// A list reaches the agent of its host, now or when it connects, with the limits of then. An agent that enforces no
// reservations gets none.
func TestReservationsReachAgents(t *testing.T) {
	h := &hub{links: map[string]*link{}}
	connect := func(host string, enforces bool) *link {
		l := &link{host: host, out: make(chan *agents.ToAgent, 2), hello: &agents.Hello{Reservations: enforces}}
		h.add(l)
		return l
	}
	next := func(l *link) proto.Message {
		t.Helper()
		select {
		case m := <-l.out:
			return agents.Carried(m)
		default:
			return nil
		}
	}
	fence := &agents.Fence{Epoch: 1, Revision: 2}
	list := func(limit uint64) *agents.Reservations {
		return &agents.Reservations{Fence: fence, Reservations: []*agents.Reservation{{Key: "a", LimitBps: limit}}}
	}
	limits := &agents.ReservationLimits{Fence: fence, LimitBps: map[string]uint64{"a": 9}}
	if h.SetReservations("h1", list(5)) || h.SetLimits("h1", limits) || h.SetLimits("h3", limits) {
		t.Error("an agent that is not connected has a list")
	}
	l := connect("h1", true)
	if got := next(l); !proto.Equal(got, list(9)) {
		t.Errorf("the agent gets %v when it connects", got)
	}
	if !h.SetReservations("h1", list(3)) || !proto.Equal(next(l), list(3)) || !h.SetLimits("h1", limits) || !proto.Equal(next(l), limits) {
		t.Error("a list or its limits do not reach the agent")
	}
	for range 2 {
		h.SetLimits("h1", limits)
	}
	if h.SetLimits("h1", limits) {
		t.Error("an agent that takes no messages has limits")
	}
	h.SetReservations("h2", list(5))
	if former := connect("h2", false); next(former) != nil || h.SetReservations("h2", list(5)) || h.SetLimits("h2", limits) {
		t.Error("an agent without reservations gets some")
	}

	l.facts = &agents.Facts{Devices: []*agents.Device{{Name: "eth0", Mac: "02:00:00:00:00:01"}}}
	h.links["h2"].facts = &agents.Facts{Devices: []*agents.Device{{Name: "eth0", Mac: "02:00:00:00:00:02"}}}
	if got := h.Interfaces(); len(got) != 1 || got[fabric.MAC{2, 0, 0, 0, 0, 1}] != (points.Interface{Host: "h1", Dev: "eth0"}) {
		t.Errorf("the interfaces are %v", got)
	}
	l.reserved = &agents.ReservationsEnforced{Fence: fence, Errors: map[string]string{"a": "no"}}
	if got := h.reservationProblems(); len(got) != 1 || got["a"] != "host h1: no" {
		t.Errorf("the problems are %v", got)
	}
	if got := problemOf(map[string]string{"-/x/forward": "a", "-/x/forward/via/r2/eth0": "b", "-/xx/forward": "c"}, "-/x/forward"); got != "a; b" {
		t.Errorf("the problems of x are %q", got)
	}
}
