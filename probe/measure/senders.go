package measure

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/probe/session"
)

// senders is a group of servers that send to one socket of this host.
type senders struct {
	hosts      []Host
	socket     *session.Socket
	clients    []*session.Client
	roundTrips []time.Duration
	// reordered is set if the servers' packets arrive through several receive queues, so that
	// their order can change.
	reordered bool
}

// roundTripCount is the number of round trips that are measured before a joint train. portTries is the
// number of local ports that are tried to get all servers' packets through one receive queue.
const roundTripCount, portTries = 20, 8

// dialAll opens a session with each server. The device selects the receive queue by addresses and
// ports (RSS), so dialAll tries several local ports until one queue receives all packets.
func dialAll(ctx context.Context, hosts []Host, o Options) (*senders, error) {
	for range portTries - 1 {
		s, err := dialOnce(ctx, hosts, o)
		if err != nil || !s.reordered {
			return s, err
		}
		s.close()
	}
	return dialOnce(ctx, hosts, o)
}

func dialOnce(ctx context.Context, hosts []Host, o Options) (_ *senders, err error) {
	s := &senders{hosts: hosts}
	if s.socket, err = session.NewSocket("udp"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	queue := 0
	peers := map[string]string{}
	for _, h := range hosts {
		options := o.Session
		options.Socket, options.Host, options.Port = s.socket, h.Host, h.Port
		options.OnWait = func(n int) { o.progress("%s: waiting, %d measurements ahead", h.Name, n) }
		c, err := session.Dial(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		s.clients = append(s.clients, c)
		if other := peers[c.Peer.String()]; other != "" {
			return nil, fmt.Errorf("%s and %s are the same server", other, h.Name)
		}
		peers[c.Peer.String()] = h.Name
		mean, _, err := c.RoundTrips(ctx, roundTripCount)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		s.roundTrips = append(s.roundTrips, mean)
		if q := s.socket.Queue(); q != 0 {
			s.reordered = s.reordered || queue != 0 && q != queue
			queue = q
		}
	}
	return s, nil
}

// names returns the hosts' names.
func (s *senders) names() (out []string) {
	for _, h := range s.hosts {
		out = append(out, h.Name)
	}
	return out
}

func (s *senders) close() {
	for _, c := range s.clients {
		c.Close()
	}
	s.socket.Close()
}
