package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"headgate/probe"
	"headgate/probe/compare"
	"headgate/probe/session"
	"headgate/unit"
)

// compared is two senders' paths to this host.
type compared struct {
	First  string         `json:"first"`
	Second string         `json:"second"`
	Result compare.Result `json:"result"`
	Bytes  unit.Bytes     `json:"bytes"`
	// Seconds that it took.
	Seconds float64 `json:"seconds,omitempty"`
}

// comparison is a pair's method: what to send next, and the answer.
type comparison struct {
	next     func([]probe.JointSample) (probe.Joint, bool)
	estimate func([]probe.JointSample) compare.Result
}

// comparing is a method by its name. The seed's knows of no difference of round trips:
// Race makes up for it.
func comparing(method string, budget unit.Bytes) comparison {
	if method == "seed" {
		m := compare.Seed{}
		return comparison{m.Next, m.Estimate}
	}
	m := compare.Ours{Budget: budget, Size: compareSize}
	return comparison{m.Next, m.Estimate}
}

func probeCompareCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "compare HOST[:PORT] HOST[:PORT]...",
		Short: "Whose path to this host has the larger capacity, and by how much",
		Long: `Compare has two servers at a time send to this host, and reads from the order in which
their packets arrive how the capacities of their paths relate. It needs no exact times,
and so works where interrupts are coalesced or this host is a virtual machine that
sleeps now and then.

A narrow link that both paths share does not count: what is compared are the parts
before they meet.`,
		Example: `  headgate probe compare a.example.org b.example.org
  headgate probe compare 10.0.1.2 10.0.2.2 10.0.3.2 --key-file probe.key -o json`,
		Args: cobra.MinimumNArgs(2),
	}
	var auth authFlags
	auth.add(c)
	budget, method := bytesFlag(9_000_000), ""
	var log string
	network := networkFlags(c)
	methodFlag(c, &method, "ours, or PathComp of the estimation seed")
	c.Flags().Var(&budget, "bytes", "have each server send no more than this for a pair")
	c.Flags().StringVar(&log, "log", "", "write the samples to a file, for \"headgate probe replay\"")
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, hosts []string) error {
		who, err := auth.client()
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		say := a.progress(*output)
		defer say.clear()
		senders, err := dialAll(ctx, c.CommandPath(), hosts, session.Options{Network: network(), Auth: who}, say)
		if err != nil {
			return err
		}
		defer senders.close()
		keep, closeLog, err := probeLog(log, "compare", hosts[0], senders.clients[0])
		if err != nil {
			return err
		}
		pairs, err := senders.compareAll(ctx, method, unit.Bytes(budget), say, keep)
		say.clear()
		return errors.Join(a.printCompared(*output, pairs), err, closeLog())
	}
	return c
}

func (a *app) printCompared(f format, pairs []compared) error {
	return a.print(f, pairs, func(w io.Writer) error {
		rows := [][]string{{"FIRST", "SECOND", "SECOND / FIRST", "SENT", "TOOK"}}
		for _, p := range pairs {
			took := ""
			if p.Seconds > 0 {
				took = fmt.Sprintf("%.2f s", p.Seconds)
			}
			rows = append(rows, []string{p.First, p.Second, plain(p.Result.Ratio), sizeText(float64(p.Bytes)), took})
		}
		if err := table(w, "", rows); err != nil {
			return err
		}
		for _, p := range pairs {
			for _, n := range p.Result.Notes {
				fmt.Fprintf(w, "%s, %s: %s\n", p.First, p.Second, n)
			}
		}
		return rankTable(w, pairs)
	})
}

// rankTable puts more than two servers on one scale.
func rankTable(w io.Writer, pairs []compared) error {
	if len(pairs) < 2 {
		return nil
	}
	var hosts []string
	place := func(h string) int {
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
		return slices.Index(hosts, h)
	}
	var ties []compare.Pair
	for _, p := range pairs {
		ties = append(ties, compare.Pair{A: place(p.First), B: place(p.Second), Result: p.Result})
	}
	rows := [][]string{{"RANK", "HOST", "CAPACITY, OF THE FASTEST'S"}}
	for i, r := range compare.Rank(len(hosts), ties) {
		rows = append(rows, []string{fmt.Sprint(i + 1), hosts[r.Sender], plain(r.Relative)})
	}
	fmt.Fprintln(w)
	return table(w, "", rows)
}

// networkFlags are -4 and -6.
func networkFlags(c *cobra.Command) func() string {
	ipv4 := c.Flags().BoolP("ipv4", "4", false, "use IPv4")
	ipv6 := c.Flags().BoolP("ipv6", "6", false, "use IPv6")
	c.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	return func() string {
		switch {
		case *ipv4:
			return "tcp4"
		case *ipv6:
			return "tcp6"
		}
		return "tcp"
	}
}

// senders are servers that send to one socket of this host.
type senders struct {
	hosts      []string
	socket     *session.Socket
	clients    []*session.Client
	roundTrips []time.Duration
	// reordered: the kernel takes their packets from several queues.
	reordered bool
}

// trips are how many round trips are measured before a race, and ports how many of
// ours are tried until all servers' packets come through one receive queue.
const trips, ports = 20, 8

// dialAll opens a session with each server. Receive queues are chosen by addresses and
// ports (RSS), so another port of ours may bring all into one.
func dialAll(ctx context.Context, command string, hosts []string, o session.Options, say *progress) (*senders, error) {
	for range ports - 1 {
		s, err := dialOnce(ctx, command, hosts, o, say)
		if err != nil || !s.reordered {
			return s, err
		}
		s.close()
	}
	return dialOnce(ctx, command, hosts, o, say)
}

func dialOnce(ctx context.Context, command string, hosts []string, o session.Options, say *progress) (_ *senders, err error) {
	s := &senders{hosts: hosts}
	if s.socket, err = session.NewSocket("udp"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	o.Socket = s.socket
	queue := 0
	peers := map[string]string{}
	for _, h := range hosts {
		server, err := probe.ParseAddress(h)
		if err != nil {
			return nil, usageError{err, command}
		}
		o.Host, o.Port = server.Host, server.Port
		o.Waiting = func(n int) { say.say("%s: waiting, %d measure before us", h, n) }
		c, err := session.Dial(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h, err)
		}
		s.clients = append(s.clients, c)
		if other := peers[c.Peer.String()]; other != "" {
			return nil, fmt.Errorf("%s and %s are the same server", other, h)
		}
		peers[c.Peer.String()] = h
		mean, _, err := c.RoundTrips(ctx, trips)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h, err)
		}
		s.roundTrips = append(s.roundTrips, mean)
		if q := s.socket.Queue(); q != 0 {
			s.reordered = s.reordered || queue != 0 && q != queue
			queue = q
		}
	}
	return s, nil
}

func (s *senders) close() {
	for _, c := range s.clients {
		c.Close()
	}
	s.socket.Close()
}

// compareAll compares every pair.
func (s *senders) compareAll(ctx context.Context, method string, budget unit.Bytes, say *progress, log *probe.Log) (out []compared, err error) {
	for i := range s.clients {
		for j := i + 1; j < len(s.clients); j++ {
			clients := []*session.Client{s.clients[i], s.clients[j]}
			trips := []time.Duration{s.roundTrips[i], s.roundTrips[j]}
			hosts := []string{s.hosts[i], s.hosts[j]}
			m := comparing(method, budget)
			p := compared{First: hosts[0], Second: hosts[1]}
			begun := time.Now()
			var samples []probe.JointSample
			for {
				joint, ok := m.next(samples)
				if !ok {
					break
				}
				say.say("%s, %s: %s, %s until now", hosts[0], hosts[1], joint.Purpose, p.Bytes)
				sample, err := session.Race(ctx, clients, trips, joint)
				if err != nil {
					return out, err
				}
				sample.Reordered = s.reordered
				p.Bytes += sample.Bytes()
				samples = append(samples, sample)
				if log != nil {
					if err := log.AddJoint(hosts, &sample); err != nil {
						return out, err
					}
				}
			}
			p.Result, p.Seconds = m.estimate(samples), time.Since(begun).Seconds()
			out = append(out, p)
		}
	}
	return out, nil
}

// replayCompared estimates again from a log.
func replayCompared(all []probe.RecordedJoint, method string) (out []compared) {
	var samples [][]probe.JointSample
	for _, r := range all {
		last := len(out) - 1
		if last < 0 || out[last].First != r.Hosts[0] || out[last].Second != r.Hosts[1] {
			out, samples = append(out, compared{First: r.Hosts[0], Second: r.Hosts[1]}), append(samples, nil)
			last++
		}
		samples[last] = append(samples[last], r.Sample)
		out[last].Bytes += r.Sample.Bytes()
	}
	for i := range out {
		out[i].Result = comparing(method, 0).estimate(samples[i])
	}
	return out
}

// compareSize of packets: of 100 bytes, which the method prefers, hosts send and
// receive too few a second. Paths of 200 and 500 Mbit/s were then told apart as 1.57.
const compareSize = 750
