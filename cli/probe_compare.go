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

// comparisonResult is the comparison of two senders' paths to this host.
type comparisonResult struct {
	First  string         `json:"first"`
	Second string         `json:"second"`
	Result compare.Result `json:"result"`
	Bytes  unit.Bytes     `json:"bytes"`
	// Seconds is the duration of the comparison.
	Seconds float64 `json:"seconds,omitempty"`
}

// comparison is a method for a pair of senders: the next trains to send, and the estimate.
type comparison struct {
	next     func([]probe.JointSample) (probe.Joint, bool)
	estimate func([]probe.JointSample) compare.Result
}

// comparisonMethod returns a method by name. The seed's method assumes equal round trips; session.Race
// compensates for the difference.
func comparisonMethod(method string, budget unit.Bytes) comparison {
	if method == "seed" {
		m := compare.PathComp{}
		return comparison{m.Next, m.Estimate}
	}
	m := compare.SmallBlocks{Budget: budget, Size: compareSize}
	return comparison{m.Next, m.Estimate}
}

func probeCompareCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "compare HOST[:PORT] HOST[:PORT]...",
		Short: "Compare the capacities of several hosts' paths to this host",
		Long: `Compare makes two servers at a time send to this host, and estimates the ratio of their
paths' capacities from the order in which the packets arrive. The method needs no exact
timestamps, so it works with coalesced interrupts and on a virtual machine that is not
always scheduled.

A bottleneck on the shared part of the paths has no effect: compare measures only the
parts before the paths join.`,
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
	c.Flags().Var(&budget, "bytes", "send at most this much from each server of a pair")
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

func (a *app) printCompared(f format, pairs []comparisonResult) error {
	return a.print(f, pairs, func(w io.Writer) error {
		rows := [][]string{{"FIRST", "SECOND", "SECOND / FIRST", "SENT", "TIME"}}
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

// rankTable prints a ranking of more than two servers, relative to the fastest.
func rankTable(w io.Writer, pairs []comparisonResult) error {
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
	rows := [][]string{{"RANK", "HOST", "RELATIVE CAPACITY"}}
	for i, r := range compare.Rank(len(hosts), ties) {
		rows = append(rows, []string{fmt.Sprint(i + 1), hosts[r.Sender], plain(r.Relative)})
	}
	fmt.Fprintln(w)
	return table(w, "", rows)
}

// networkFlags adds the flags -4 and -6.
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

// senders is a group of servers that send to one socket of this host.
type senders struct {
	hosts      []string
	socket     *session.Socket
	clients    []*session.Client
	roundTrips []time.Duration
	// reordered is set if the servers' packets arrive through several receive queues, so that
	// their order can change.
	reordered bool
}

// trips is the number of round trips that are measured before a race. ports is the number of
// local ports that are tried to get all servers' packets through one receive queue.
const trips, portTries = 20, 8

// dialAll opens a session with each server. The device selects the receive queue by addresses and
// ports (RSS), so dialAll tries several local ports until one queue receives all packets.
func dialAll(ctx context.Context, command string, hosts []string, o session.Options, say *progress) (*senders, error) {
	for range portTries - 1 {
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
		o.OnWait = func(n int) { say.say("%s: waiting, %d measurements ahead", h, n) }
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

// compareAll compares every pair of senders.
func (s *senders) compareAll(ctx context.Context, method string, budget unit.Bytes, say *progress, log *probe.Log) (out []comparisonResult, err error) {
	for i := range s.clients {
		for j := i + 1; j < len(s.clients); j++ {
			clients := []*session.Client{s.clients[i], s.clients[j]}
			trips := []time.Duration{s.roundTrips[i], s.roundTrips[j]}
			hosts := []string{s.hosts[i], s.hosts[j]}
			m := comparisonMethod(method, budget)
			p := comparisonResult{First: hosts[0], Second: hosts[1]}
			begun := time.Now()
			var samples []probe.JointSample
			for {
				joint, ok := m.next(samples)
				if !ok {
					break
				}
				say.say("%s, %s: %s, %s sent", hosts[0], hosts[1], joint.Purpose, p.Bytes)
				sample, err := session.SendJoint(ctx, clients, trips, joint)
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

// replayCompared repeats the estimates from the samples of a log.
func replayCompared(all []probe.LoggedJoint, method string) (out []comparisonResult) {
	var samples [][]probe.JointSample
	for _, r := range all {
		last := len(out) - 1
		if last < 0 || out[last].First != r.Hosts[0] || out[last].Second != r.Hosts[1] {
			out, samples = append(out, comparisonResult{First: r.Hosts[0], Second: r.Hosts[1]}), append(samples, nil)
			last++
		}
		samples[last] = append(samples[last], r.Sample)
		out[last].Bytes += r.Sample.Bytes()
	}
	for i := range out {
		out[i].Result = comparisonMethod(method, 0).estimate(samples[i])
	}
	return out
}

// compareSize is the packet size in bytes. The method prefers 100 bytes, but hosts cannot send
// and receive enough such packets per second: paths of 200 and 500 Mbit/s had a ratio of 1.57.
const compareSize = 750
