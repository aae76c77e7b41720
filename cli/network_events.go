package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/internal/text"
)

// eventTime is the format of the times of events.
const eventTime = "2006-01-02 15:04:05.000"

// eventInterval is how often "network events --follow" asks for new events: a person reads no faster.
const eventInterval = time.Second

func networkEventsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what has happened in the network, the oldest first",
		Long: `Events prints the last 1000 events of the network: switches, ports, links and hosts that come and go,
faults, and claims of addresses. The leader of the controllers keeps them in memory, and no other controller
has them: what happened before it became the leader is only in the log of the leader before. It says from
when on it has all events. A refusal that repeats is one event with a count.

With --follow it prints the events from now on, or from --since on, until it is interrupted: a line each,
and with -o json an object on each line.`,
		Example: `  headgate network events
  headgate network events --kind link --switch s1 --since 10m
  headgate network events --follow -o json | jq 'select(.kind == "link-removed")'`,
		Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), outputFlag(c)
	follow := c.Flags().Bool("follow", false, "print further events as they happen")
	of := c.Flags().String("switch", "", "only events of this `SWITCH`, its ports and links: a datapath id, or a name")
	kind := c.Flags().String("kind", "", "only events of this `KIND`, such as link-removed, or of all that begin with it, such as link")
	since := c.Flags().String("since", "", "only events after this: a duration before now, or a `TIME` such as 2026-05-01T00:00:00Z")
	completeFlag(c, "switch", completeNetwork(server, false))
	completeFlag(c, "kind", oneOf(eventKinds()...))
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		p, err := eventFilter(c, request{ctx: ctx, client: client}, *of, *kind, *since)
		if err != nil {
			return err
		}
		if *follow {
			if *output == "yaml" {
				return usageError{errors.New("--follow cannot be used with -o yaml: use -o json"), c.CommandPath()}
			}
			return a.followEvents(ctx, client, p, *since != "", *output)
		}
		got, err := api.Decode[api.NetworkEventList](client.ListNetworkEvents(ctx, p))
		if err != nil {
			return err
		}
		if !got.Since.IsZero() {
			a.note("all events since %s are listed; of the time before, those of other leaders are not kept", got.Since.Local().Format(eventTime))
		}
		return a.print(*output, got.Items, func(w io.Writer) error {
			rows := [][]string{{"AT", "KIND", "MESSAGE"}}
			for _, e := range got.Items {
				rows = append(rows, eventRow(e))
			}
			return text.Table(w, "", rows)
		})
	}
	return c
}

// eventKinds returns the values of --kind.
func eventKinds() (all []string) {
	for _, kind := range fabric.EventKinds {
		first, _, _ := strings.Cut(string(kind), "-")
		for _, word := range []string{first, string(kind)} {
			if !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all
}

// eventFilter returns what flags ask for.
func eventFilter(c *cobra.Command, q request, of, kind, since string) (*api.ListNetworkEventsParams, error) {
	p := &api.ListNetworkEventsParams{}
	if kind != "" {
		if all := eventKinds(); !slices.Contains(all, kind) {
			return nil, usageError{fmt.Errorf("%q is no kind of events: use one of %s", kind, strings.Join(all, ", ")), c.CommandPath()}
		}
		p.Kind = &kind
	}
	if since != "" {
		from, err := parseTime(since, time.Now())
		if err != nil {
			return nil, usageError{fmt.Errorf("--since: %w", err), c.CommandPath()}
		}
		p.Since = &from
	}
	if of != "" {
		id, err := switchID(q, of)
		if err != nil {
			return nil, err
		}
		p.Switch = &id
	}
	return p, nil
}

// eventRow returns the columns of an event.
func eventRow(e api.NetworkEvent) []string {
	message := e.Message
	if e.Count != nil && e.Last != nil {
		message += fmt.Sprintf(" (%d times, last at %s)", *e.Count, e.Last.Local().Format(eventTime))
	}
	return []string{e.At.Local().Format(eventTime), e.Kind, message}
}

// eventsSeen tells new events from those that were seen. The zero value has seen none.
type eventsSeen struct {
	from time.Time // of the last event
	at   map[eventKey]bool
}

// eventKey identifies an event.
type eventKey struct {
	at            int64 // ns since 1970
	kind, message string
}

// fresh returns the new ones of all events since from. One that has happened again is none.
func (s *eventsSeen) fresh(all []api.NetworkEvent) (fresh []api.NetworkEvent) {
	at, last := map[eventKey]bool{}, s.from
	for _, e := range all {
		if e.At.Before(s.from) {
			continue
		}
		key := eventKey{e.At.UnixNano(), e.Kind, e.Message}
		if !s.at[key] {
			fresh = append(fresh, e)
		}
		at[key] = true
		if e.At.After(last) {
			last = e.At
		}
	}
	s.from, s.at = last, at
	return fresh
}

// followEvents prints events as they happen until ctx ends, and with all those that there are, too.
func (a *app) followEvents(ctx context.Context, client *api.Client, p *api.ListNetworkEventsParams, all bool, f format) error {
	var seen eventsSeen
	for asked, failed := false, false; ; {
		got, err := api.Decode[api.NetworkEventList](client.ListNetworkEvents(ctx, p))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!asked || errors.Is(err, os.ErrPermission)):
			return err
		case err != nil && !failed:
			a.note("headgate: cannot read the events, trying again: %v", err)
		}
		if failed = err != nil; !failed {
			fresh := seen.fresh(got.Items)
			if !seen.from.IsZero() {
				p.Since = &seen.from
			}
			if asked || all {
				for _, e := range fresh {
					if err := a.printNetworkEvent(f, e); err != nil {
						return err
					}
				}
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(eventInterval):
		}
	}
}

func (a *app) printNetworkEvent(f format, e api.NetworkEvent) error {
	if f == "json" {
		return json.NewEncoder(a.out).Encode(e)
	}
	row := eventRow(e)
	_, err := fmt.Fprintf(text.Plain(a.out), "%s  %-18s  %s\n", row[0], row[1], row[2])
	return err
}
