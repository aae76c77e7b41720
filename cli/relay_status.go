package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	apihost "headgate.dev/headgate/api/host"
	"headgate.dev/headgate/relay/host"
	"headgate.dev/headgate/view"
)

func relayStatusCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Print the status of a running relay agent",
		Long: `Status queries "headgate relay run" and "relay forward" on this machine. It prints the paths to each exit and from
each entry with their streams, round-trip times and rates, and the connections with their rates
in the last second, what they have sent and received, and the bytes that wait: for a stream or
an acknowledgement (WAITING), for the application (UNREAD), and for earlier bytes (REORDER).

SENDING and SENT are from this agent to the other, in bit/s and bytes of the applications.

If several agents are running, status lists them, and --agent selects one.

With --ended it prints the last 1000 connections that have ended, and the part of their bytes
that each path has carried.

With --server, status prints a relay agent of a host of a service: of the connections and entries
those with the highest rates, and how many are left out.`,
		Example: `  headgate relay status
  headgate relay status --streams
  headgate relay status --ended -o json
  headgate relay status --agent east
  headgate relay status --server default --host web1`,
		Args: cobra.NoArgs,
	}
	agent, output, at := relayAgentFlag(c), outputFlag(c), serverFlags(c)
	streams := c.Flags().Bool("streams", false, "print each stream")
	ended := c.Flags().Bool("ended", false, "print the last connections that have ended")
	c.MarkFlagsMutuallyExclusive("streams", "ended")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *output == "table" && !*ended && !*streams {
			all, err := relaysOf(c.Context(), at, *agent)
			switch {
			case len(all) == 1:
				return errors.Join(view.WriteRelay(a.out, all[0], false), err)
			case len(all) > 1:
				return errors.Join(view.WriteRelayAgents(a.out, all), err)
			}
			return err
		}
		s, err := relayOf(c.Context(), at, *agent)
		if err != nil {
			return err
		}
		if *ended {
			records, err := relayEnded(c.Context(), at, s.Agent)
			if err != nil {
				return err
			}
			return a.print(*output, records, func(w io.Writer) error { return view.WriteRelayEnded(w, records) })
		}
		return a.print(*output, s, func(w io.Writer) error { return view.WriteRelay(w, s, *streams) })
	}
	return c
}

func relayTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch a running relay agent live",
		Long: `Top polls "headgate relay run" on this machine, and shows what "headgate relay status" prints; the
connection with the highest rate is the first. Keys: q quit, p pause, arrows scroll. With --server,
top shows a relay agent of a host of a service.

If standard output is not a terminal, top prints the readings one after the other; with -o json,
one object per line. Set NO_COLOR in the environment to disable colours.`,
		Example: `  headgate relay top
  headgate relay top --once
  headgate relay top --server default --host web1
  headgate relay top -o json | jq -c '.connections[]'`,
		Args: cobra.NoArgs,
	}
	agent, at := relayAgentFlag(c), serverFlags(c)
	interval := c.Flags().Duration("interval", time.Second, "time between two readings")
	once := c.Flags().Bool("once", false, "print one reading and exit")
	output := tableOrJSONFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *interval < minInterval || *interval > maxInterval {
			return usageError{fmt.Errorf("--interval %v is out of range: set %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		}
		s, err := relayOf(c.Context(), at, *agent)
		if err != nil {
			return err
		}
		name := s.Agent
		print := func(s host.Status) error {
			if *output == "json" {
				return json.NewEncoder(a.out).Encode(s)
			}
			return view.WriteRelay(a.out, s, false)
		}
		source := func() (host.Status, error) {
			if at.isSet() {
				return relayOf(c.Context(), at, name)
			}
			return host.QueryStatus(name)
		}
		if *once {
			return print(s)
		}
		if _, live := view.Width(a.out); live && *output != "json" {
			return a.topScreen(view.NewRelayScreen(source, *interval, view.NewTheme(a.out)))
		}
		ctx, stop := interrupted()
		defer stop()
		err = view.Poll(ctx, *interval, false, source, func(s host.Status, _ bool) error { return print(s) })
		if errors.Is(err, host.ErrNotRunning) {
			return nil // it has ended
		}
		return err
	}
	return c
}

func relayAgentFlag(c *cobra.Command) *string {
	return c.Flags().String("agent", "", "the `NAME` of the relay agent, if several are running")
}

// relayOf returns the status of a relay agent of this machine or, with --server, of a host of a service; for the name
// "" that of the only one.
func relayOf(ctx context.Context, at *remoteHost, name string) (host.Status, error) {
	all, err := relaysOf(ctx, at, name)
	switch {
	case err != nil:
		return host.Status{}, err
	case len(all) > 1:
		var names []string
		for _, s := range all {
			names = append(names, s.Agent)
		}
		return host.Status{}, fmt.Errorf("several relay agents are running: set --agent to one of %s", strings.Join(names, ", "))
	}
	return all[0], nil
}

// relaysOf returns the status of a relay agent, or of all for "": at least one, or an error. The error is that of other
// agents if there are both.
func relaysOf(ctx context.Context, at *remoteHost, name string) (all []host.Status, err error) {
	where, query := "this machine", func() ([]host.Status, error) { return localRelays(name) }
	if at.isSet() {
		h, err := at.open()
		if err != nil {
			return nil, err
		}
		where, query = h.Name, func() ([]host.Status, error) { return serverRelays(ctx, h, name) }
	}
	all, err = query()
	switch {
	case len(all) > 0 && name != "":
		return all, nil
	case len(all) > 0 || err != nil:
		return all, err
	case name != "":
		return nil, fmt.Errorf("relay agent %s is not running on %s: start it with \"headgate relay run -f FILE\"", name, where)
	}
	return nil, fmt.Errorf("no relay agent is running on %s: start one with \"headgate relay run -f FILE\"", where)
}

// localRelays returns the status of a relay agent of this machine, or of all for "". The error is that of agents that
// cannot be queried.
func localRelays(name string) (all []host.Status, failed error) {
	names := []string{name}
	if name == "" {
		names = host.Running()
	}
	for _, n := range names {
		s, err := host.QueryStatus(n)
		switch {
		case errors.Is(err, host.ErrNotRunning): // a killed agent left its socket
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("cannot query the relay agent %s: %w", n, err))
		default:
			all = append(all, s)
		}
	}
	return all, failed
}

// serverRelays returns the status of a relay agent of a host of a service, or of all for "", as reported by the host's
// agent. The error is that of agents that cannot be queried.
func serverRelays(ctx context.Context, h apihost.Host, name string) ([]host.Status, error) {
	got, err := api.Decode[struct {
		Items []host.Status
		Error string
	}](h.Client.ListRelays(ctx, h.Name))
	if err != nil {
		return nil, err
	}
	if got.Error != "" {
		err = fmt.Errorf("cannot query the relay agents of %s: %s", h.Name, got.Error)
	}
	return slices.DeleteFunc(got.Items, func(s host.Status) bool { return name != "" && s.Agent != name }), err
}

// relayEnded returns the connections of a relay agent that have ended.
func relayEnded(ctx context.Context, at *remoteHost, name string) ([]host.ConnectionStatus, error) {
	if !at.isSet() {
		return host.QueryEnded(name)
	}
	h, err := at.open()
	if err != nil {
		return nil, err
	}
	got, err := api.Decode[struct{ Items []host.ConnectionStatus }](h.Client.ListRelayEnded(ctx, h.Name, name))
	return got.Items, err
}
