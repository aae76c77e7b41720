package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// reservationsFile has the last list of reservations, as JSON of storedReservations.
const reservationsFile = "reservations.json"

// minReservationInterval is the least interval of reservation reports: a cycle of the controllers has 100 ms at the
// least (docs/decisions/0039-reservations.md), and the agent reads all counters for each report.
const minReservationInterval = 100 * time.Millisecond

// storedReservations is the content of the file.
type storedReservations struct {
	// Controller is the hash of the certificate authority of the controllers that sent the list.
	Controller string          `json:"service,omitempty"`
	List       json.RawMessage `json:"list"` // agents.Reservations, as protojson writes it
}

// Reservations are the reservations that the controllers have granted at interfaces of this host: the list as stored on
// disk, with the limits as last received.
type Reservations struct {
	dir string

	mu        sync.Mutex
	authority string // hash of the certificate authority of the controllers that sent the list
	list      *agents.Reservations
	desired   reserved.Desired
}

// OpenReservations reads the list from a directory.
func OpenReservations(dir string) (*Reservations, error) {
	r := &Reservations{dir: dir, list: &agents.Reservations{}}
	var stored storedReservations
	file := filepath.Join(dir, reservationsFile)
	err := readFile(file, &stored)
	if err == nil {
		// A field that this version does not know is of a newer agent that ran here before.
		if err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(stored.List, r.list); err != nil {
			err = fmt.Errorf("%s is %w: %w", file, errDamaged, err)
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return r, nil
	case errors.Is(err, errDamaged):
		slog.Error("reservations of this host are lost until a controller sends them again", "error", err)
		r.list = &agents.Reservations{}
		return r, nil
	case err != nil:
		return r, err
	}
	r.authority, r.desired = stored.Controller, desiredReservations(r.list)
	return r, nil
}

// Store takes a list of controllers with this certificate authority, and stores it. It returns ErrStale, and changes
// nothing, for a list that is older than the one it has. After another error the list is in force, and a restarted agent
// begins with the list before.
func (r *Reservations) Store(authority string, list *agents.Reservations) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if authority == r.authority && older(list.Fence, r.list.Fence) {
		return fmt.Errorf("%w: received reservations of epoch/revision %d/%d, have %d/%d", ErrStale, list.Fence.GetEpoch(), list.Fence.GetRevision(), r.list.Fence.GetEpoch(), r.list.Fence.GetRevision())
	}
	r.authority, r.list, r.desired = authority, list, desiredReservations(list)
	r.desired.Received = true
	text, err := protojson.Marshal(list)
	if err == nil {
		err = writeFile(filepath.Join(r.dir, reservationsFile), storedReservations{authority, text})
	}
	if err != nil {
		return fmt.Errorf("cannot write the reservations to disk: %w", err)
	}
	return nil
}

// Adjust changes limits in memory, and reports whether it did: a message that is older than the list, and the keys of
// other reservations, are ignored.
func (r *Reservations) Adjust(l *agents.ReservationLimits) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.desired.Received || older(l.Fence, r.list.Fence) {
		return false
	}
	changed := false
	for n := range r.desired.Reservations {
		one := &r.desired.Reservations[n]
		if limit, ok := l.LimitBps[one.Key]; ok && unit.Rate(limit) != one.Limit {
			one.Limit, changed = unit.Rate(limit), true
		}
	}
	return changed
}

// Desired returns the reservations, and the fence of their list.
func (r *Reservations) Desired() (reserved.Desired, *agents.Fence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.desired
	d.Reservations = slices.Clone(d.Reservations) // Adjust changes limits in place
	return d, r.list.Fence
}

// Devs returns the interfaces that have reservations, sorted.
func (r *Reservations) Devs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.desired.Devs()
}

// Limits returns the limits of all reservations, by key.
func (r *Reservations) Limits() map[string]unit.Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]unit.Rate, len(r.desired.Reservations))
	for _, one := range r.desired.Reservations {
		out[one.Key] = one.Limit
	}
	return out
}

// Interval returns the interval of reports that the controllers want; 0 if there are no reservations.
func (r *Reservations) Interval() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch every := time.Duration(r.list.ReportIntervalNs); {
	case len(r.list.Reservations) == 0:
		return 0
	case every <= 0:
		return reportInterval
	default:
		return max(every, minReservationInterval)
	}
}

// older reports whether a fence is lower than another.
func older(a, b *agents.Fence) bool {
	return a.GetEpoch() < b.GetEpoch() || a.GetEpoch() == b.GetEpoch() && a.GetRevision() < b.GetRevision()
}

func desiredReservations(list *agents.Reservations) (d reserved.Desired) {
	d.Lines = map[string]unit.Rate{}
	for dev, rate := range list.LineBps {
		d.Lines[dev] = unit.Rate(rate)
	}
	for _, one := range list.Reservations {
		r := reserved.Reservation{Key: one.Key, Dev: one.Dev, Rate: unit.Rate(one.RateBps), Limit: unit.Rate(one.LimitBps), Class: int(one.Class)}
		if one.Direction != agents.Egress {
			r.Invalid = fmt.Errorf("this version of the agent does not know the direction %q: upgrade the agent", one.Direction)
		}
		for _, t := range one.Traffic {
			s, err := selector(t)
			if err != nil && r.Invalid == nil {
				r.Invalid = err
			}
			r.Traffic = append(r.Traffic, s)
		}
		d.Reservations = append(d.Reservations, r)
	}
	return d
}

// selector returns the selector of packets. A field that this version does not know is an error: without it, the
// selector would match other packets too.
func selector(t *agents.Traffic) (s group.Selector, err error) {
	if len(t.ProtoReflect().GetUnknown()) > 0 {
		return s, errors.New("this version of the agent does not know all fields of its traffic: upgrade the agent")
	}
	prefix := func(to *[]netip.Prefix, text string) {
		if text == "" || err != nil {
			return
		}
		var p netip.Prefix
		p, err = group.ParsePrefix(text)
		*to = append(*to, p)
	}
	ports := func(to *[]group.PortRange, r *agents.PortRange) {
		if r == nil || err != nil {
			return
		}
		if r.First > r.Last || r.Last > math.MaxUint16 {
			err = fmt.Errorf("%d-%d is not a range of ports: write two numbers from 0 to 65535, the smaller one first", r.First, r.Last)
			return
		}
		*to = append(*to, group.PortRange{First: uint16(r.First), Last: uint16(r.Last)})
	}
	prefix(&s.Src, t.Source)
	prefix(&s.Dst, t.Destination)
	ports(&s.SPort, t.SourcePorts)
	ports(&s.DPort, t.DestinationPorts)
	switch {
	case err != nil:
		return s, err
	case t.Protocol > math.MaxUint8:
		return s, fmt.Errorf("%d is not a protocol: write a number from 0 to 255", t.Protocol)
	case t.Vlan > math.MaxUint16:
		return s, fmt.Errorf("%d is not a VLAN: write a number from 1 to 4094", t.Vlan)
	}
	if t.Protocol != 0 {
		s.Proto = []uint8{uint8(t.Protocol)}
	}
	if t.Vlan != 0 {
		s.VLAN = []group.Range{group.SingleRange(uint16(t.Vlan))}
	}
	return s, nil
}

// storeReservations takes a list that the controller sent.
func (s *session) storeReservations(list *agents.Reservations) {
	if s.Reservations == nil {
		return
	}
	switch err := s.Reservations.Store(s.authority, list); {
	case errors.Is(err, ErrStale): // of a leader whose term has ended
		slog.Warn("ignoring a list of reservations", "error", err)
		return
	case err != nil:
		slog.Warn("the reservations are in force, but a restart of the agent forgets them", "error", err)
	}
	select {
	case s.relisted <- struct{}{}:
	default:
	}
	s.Changed()
}

// SetReservationsEnforced sets which list of reservations the agent reports as applied, and the errors by key.
func (l *Link) SetReservationsEnforced(fence *agents.Fence, errs map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved = &agents.ReservationsEnforced{Fence: fence, Errors: errs}
	l.notifyReport()
}

// reservations returns what is applied of the list, nil if no controller has sent any.
func (s *session) reservations() *agents.ReservationsEnforced {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved.GetFence() == nil {
		return nil
	}
	return s.reserved
}

// SendReservationReport sends a report to the controller, and reports whether there is an open stream that takes it.
func (l *Link) SendReservationReport(r *agents.ReservationReport) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return false
	}
	select {
	case l.current.out <- agents.From(r):
		return true
	default:
		return false
	}
}
