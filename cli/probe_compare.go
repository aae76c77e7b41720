package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/report"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

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
		senders, err := parseHosts("compare", hosts...)
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		progress := a.progress(*output)
		defer progress.Clear()
		o := measure.Options{Session: session.Options{Network: network(), Auth: who}, Log: log, OnProgress: progress.Show}
		pairs, failure := measure.Compare(ctx, senders, method == "seed", unit.Bytes(budget), o)
		progress.Clear()
		if pairs == nil {
			return failure
		}
		return errors.Join(a.printCompared(*output, pairs), failure)
	}
	return c
}

func (a *app) printCompared(f format, pairs []measure.Comparison) error {
	return a.print(f, pairs, func(w io.Writer) error { return report.WriteComparisons(w, pairs) })
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
