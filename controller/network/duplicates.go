package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
)

// Constants of switches with one datapath id, chosen for Headgate.
const (
	// aliveTimeout is how long a switch may take to answer an echo request while another with its id waits: a switch that is alive
	// answers within a round trip.
	aliveTimeout = 2 * time.Second
	// duplicateMemory is for how long a switch that is refused is remembered. Open vSwitch tries again within 8 s, unless its
	// max_backoff is set, and other switches within a minute.
	duplicateMemory = time.Minute
)

// duplicate is a second switch with the id of one that is connected.
type duplicate struct {
	first *session.Conn // that is connected
	tried time.Time     // when the second was last refused
	text  string
}

// Why the channel of a switch ends whose id another one claims.
var (
	errGone      = errors.New("it does not answer, and a switch with its id has connected")
	errDisplaced = errors.New("a switch with its id and a certificate has connected")
)

// register adds a channel to those that end when the configuration no longer has their switch or their listener. The error is why it may
// not be added now. While a switch with the same id is connected and answers, a second one is refused: two that take turns would lose the
// frames of both. At a listener without TLS any peer can claim the id of a switch, and must not displace one with a certificate.
func (s *Switches) register(ctx context.Context, c *session.Conn, at fabric.Listener) error {
	for {
		other, from, err := s.add(c, at)
		switch {
		case other == nil:
			return err
		case from.TLS && !at.TLS:
			return s.refuseSecond(other, c, ", and claims its id without TLS")
		case !from.TLS && at.TLS:
			s.drop(other, errDisplaced)
		case alive(ctx, other):
			return s.refuseSecond(other, c, "")
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			s.drop(other, errGone)
		}
	}
}

// add adds a channel, or returns one of a switch with the same id, with its listener, or why the configuration refuses it.
func (s *Switches) add(c *session.Conn, at fabric.Listener) (other *session.Conn, from fabric.Listener, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.refusal(c, at); why != nil {
		return nil, from, why
	}
	for other, from := range s.channels {
		if other.DatapathID() == c.DatapathID() && other.Err() == nil {
			return other, from, nil
		}
	}
	s.channels[c] = at
	return nil, from, nil
}

// drop ends a channel for a reason.
func (s *Switches) drop(c *session.Conn, why error) {
	c.CloseFor(why)
	s.unregister(c)
}

// alive reports whether a switch answers an echo request (OpenFlow 1.3.5, section 6.4).
func alive(ctx context.Context, c *session.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	_, err := c.Request(ctx, &openflow.EchoRequest{})
	return err == nil
}

// refuseSecond remembers the second switch with an id as a fault, and returns why it is refused.
func (s *Switches) refuseSecond(first, second *session.Conn, how string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fabric.DPID(first.DatapathID())
	err := fmt.Errorf("switch %v is connected from %v, and a second one with this id from %v is refused%s: give one of them another id (ovs-vsctl set bridge BRIDGE other_config:datapath-id=ID), or, if both are one switch, list this controller once in it",
		s.label(id), first.RemoteAddr(), second.RemoteAddr(), how)
	if s.duplicates == nil {
		s.duplicates = map[fabric.DPID]duplicate{}
	}
	s.duplicates[id] = duplicate{first, time.Now(), err.Error()}
	return err
}

// label prints a switch by its name, if it has one, and its id. s.mu must be held.
func (s *Switches) label(id fabric.DPID) string {
	if s.config != nil {
		if one, ok := s.config.Switch(id); ok && one.Name != "" {
			return fmt.Sprintf("%s (%v)", one.Name, id)
		}
	}
	return id.String()
}

// Faults returns the faults that are found where switches connect, in the order of the switches. Those of Live are others.
func (s *Switches) Faults() (all []fabric.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.duplicates {
		if d.first.Err() != nil || time.Since(d.tried) >= duplicateMemory {
			delete(s.duplicates, id)
			continue
		}
		all = append(all, fabric.Fault{Kind: fabric.DuplicateID, Port: fabric.PortID{Switch: id}, Text: d.text})
	}
	slices.SortFunc(all, func(a, b fabric.Fault) int { return cmp.Compare(a.Port.Switch, b.Port.Switch) })
	return all
}
