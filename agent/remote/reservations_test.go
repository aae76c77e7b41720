package remote

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/unit"
)

func reservations(epoch uint64, revision int64, limit uint64) *agents.Reservations {
	return &agents.Reservations{
		Fence: &agents.Fence{Epoch: epoch, Revision: revision}, LineBps: map[string]uint64{"eth0": 1e9}, ReportIntervalNs: 2e8,
		Reservations: []*agents.Reservation{{
			Key: "acme/a/forward", Dev: "eth0", Direction: agents.Egress, RateBps: 2e7, LimitBps: limit, Class: 2,
			Traffic: []*agents.Traffic{{Source: "10.0.0.1", Destination: "2001:db8::/32", Protocol: 17, Vlan: 5, SourcePorts: &agents.PortRange{First: 1, Last: 9}, DestinationPorts: &agents.PortRange{First: 53, Last: 53}}},
		}},
	}
}

func limitOf(r *Reservations) (unit.Rate, bool) {
	d, _ := r.Desired()
	if len(d.Reservations) != 1 {
		return 0, d.Received
	}
	return d.Reservations[0].Limit, d.Received
}

func TestReservationsAreStored(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenReservations(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Interval() != 0 {
		t.Errorf("without reservations the interval is %v", r.Interval())
	}
	if err := r.Store("ca", reservations(3, 7, 5e6)); err != nil {
		t.Fatal(err)
	}
	d, fence := r.Desired()
	selector := "proto udp src 10.0.0.1/32 dst 2001:db8::/32 sport 1-9 dport 53 vlan 5"
	one := d.Reservations[0]
	if got := one.Traffic[0].String(); got != selector || one.Invalid != nil {
		t.Errorf("the traffic is %s, %v, want %s", got, one.Invalid, selector)
	}
	if one.Traffic = nil; !reflect.DeepEqual(one, reserved.Reservation{Key: "acme/a/forward", Dev: "eth0", Rate: 20 * unit.Mbit, Limit: 5 * unit.Mbit, Class: 2}) || d.Lines["eth0"] != unit.Gbit || fence.Epoch != 3 || r.Interval() != 200*time.Millisecond {
		t.Errorf("the reservations are %+v, %v, %v", d, fence, r.Interval())
	}

	// An older list and older limits change nothing. Keys that are not in the list are ignored.
	if err := r.Store("ca", reservations(3, 6, 1)); !errors.Is(err, ErrStale) {
		t.Errorf("an older list: %v", err)
	}
	limits := func(epoch uint64, key string) *agents.ReservationLimits {
		return &agents.ReservationLimits{Fence: &agents.Fence{Epoch: epoch, Revision: 8}, LimitBps: map[string]uint64{key: 9e6}}
	}
	if r.Adjust(limits(2, "acme/a/forward")) || r.Adjust(limits(3, "acme/b/forward")) {
		t.Error("limits of an earlier leader, or of another reservation, change something")
	}
	if !r.Adjust(limits(3, "acme/a/forward")) || r.Adjust(limits(3, "acme/a/forward")) {
		t.Error("a limit does not change once")
	}
	if limit, received := limitOf(r); limit != 9*unit.Mbit || !received || r.Limits()["acme/a/forward"] != limit {
		t.Errorf("the limit is %v, received %v", limit, received)
	}

	// A restarted agent has the list, and knows that its limits may be old.
	again, err := OpenReservations(dir)
	if err != nil {
		t.Fatal(err)
	}
	if limit, received := limitOf(again); limit != 5*unit.Mbit || received {
		t.Errorf("after a restart the limit is %v, received %v", limit, received)
	}
	if again.Adjust(limits(3, "acme/a/forward")) {
		t.Error("limits arrive before the list")
	}
	if err := again.Store("ca", reservations(3, 6, 1)); !errors.Is(err, ErrStale) {
		t.Errorf("an older list after a restart: %v", err)
	}
	if err := again.Store("another ca", reservations(1, 1, 4e6)); err != nil {
		t.Errorf("the list of other controllers: %v", err)
	}

	// If the disk cannot be written, the list is in force.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := again.Store("another ca", reservations(1, 2, 3e6)); err == nil {
		t.Error("a list is written into a folder that does not exist")
	}
	if limit, _ := limitOf(again); limit != 3*unit.Mbit {
		t.Errorf("the limit is %v", limit)
	}
}

func TestOpenDamagedReservations(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{`{"list": 7}`, `{`} {
		if err := os.WriteFile(filepath.Join(dir, reservationsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := OpenReservations(dir); err != nil || len(r.desired.Reservations) > 0 {
			t.Errorf("%s: %v, %v", text, r.desired.Reservations, err)
		}
	}
	text := `{"service": "ca", "list": {"reservations": [{"key": "a", "strange": 1}], "strange": {}}}`
	if err := os.WriteFile(filepath.Join(dir, reservationsFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := OpenReservations(dir); err != nil || len(r.desired.Reservations) != 1 {
		t.Errorf("the list of a newer agent: %v", err)
	}
}

func TestSelectorRefuses(t *testing.T) {
	strange := &agents.Traffic{Source: "10.0.0.1"}
	strange.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7))
	for what, traffic := range map[string]*agents.Traffic{
		"is not an address":   {Source: "h1"},
		"has host bits set":   {Destination: "10.0.0.1/8"},
		"range of ports":      {SourcePorts: &agents.PortRange{First: 9, Last: 8}},
		"is not a range":      {DestinationPorts: &agents.PortRange{First: 9, Last: 65536}},
		"is not a protocol":   {Protocol: 256},
		"is not a VLAN":       {Vlan: 65536},
		"does not know all":   strange,
		"not an address or p": {Source: "10.0.0.1", Destination: "x", SourcePorts: &agents.PortRange{First: 9, Last: 8}},
	} {
		if _, err := selector(traffic); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: %v, want %q", traffic, err, what)
		}
	}
	list := reservations(1, 1, 1)
	list.Reservations[0].Direction = "ingress"
	if d := desiredReservations(list); d.Reservations[0].Invalid == nil {
		t.Error("a direction that the agent does not know is accepted")
	}
	if s, err := selector(&agents.Traffic{}); err != nil || !s.IsZero() {
		t.Errorf("all traffic is %v, %v", s, err)
	}
}

// The list, its limits, and reports pass through the stream. The interval of readings is that of the list.
func TestReservationsOverTheStream(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	c.heard = make(chan *agents.FromAgent)
	adjusted, intervals := make(chan struct{}, 1), make(chan time.Duration, 10)
	a := start(t, dir, func(l *Link) {
		l.Report = func() *agents.Report { return nil }
		l.LimitsChanged = func() { adjusted <- struct{}{} }
		l.SetReportInterval = func(every time.Duration) { intervals <- every }
		var err error
		if l.Reservations, err = OpenReservations(dir); err != nil {
			t.Fatal(err)
		}
	})
	if h := within(t, "the agent connects", 10*time.Second, c.hello); !h.Reservations {
		t.Errorf("the agent announces %v", h)
	}
	within(t, "facts", 5*time.Second, c.heard)
	c.say <- agents.To(reservations(1, 1, 5e6))
	within(t, "the reservations change", 5*time.Second, a.changed)
	if every := within(t, "the interval changes", 5*time.Second, intervals); every != 200*time.Millisecond {
		t.Errorf("the interval of readings is %v", every)
	}
	c.say <- agents.To(&agents.ReservationLimits{Fence: &agents.Fence{Epoch: 1, Revision: 1}, LimitBps: map[string]uint64{"acme/a/forward": 6e6}})
	within(t, "the limits change", 5*time.Second, adjusted)
	if limit, _ := limitOf(a.Reservations); limit != 6*unit.Mbit {
		t.Errorf("the limit is %v", limit)
	}
	if !a.SendReservationReport(&agents.ReservationReport{AtNs: 7}) {
		t.Error("the stream takes no report")
	}
	if m := within(t, "a report", 5*time.Second, c.heard); m.GetReservationReport().GetAtNs() != 7 {
		t.Errorf("received %v, want a report", m)
	}
	a.SetApplied(&agents.Fence{}, nil)
	a.SetReservationsEnforced(&agents.Fence{Epoch: 1, Revision: 1}, map[string]string{"acme/a/forward": "no"})
	for {
		m := within(t, "what is enforced", 5*time.Second, c.heard)
		if e := m.GetReservationsEnforced(); e != nil {
			if e.Errors["acme/a/forward"] != "no" || e.Fence.Revision != 1 {
				t.Errorf("enforced is %v", e)
			}
			break
		}
	}
	c.say <- agents.To(&agents.Reservations{Fence: &agents.Fence{Epoch: 1, Revision: 2}})
	for { // what is enforced and facts may still arrive
		select {
		case every := <-intervals:
			if every != reportInterval {
				t.Errorf("without reservations the interval of readings is %v", every)
			}
			return
		case <-c.heard:
		case <-time.After(5 * time.Second):
			t.Fatal("the interval does not change")
		}
	}
}
