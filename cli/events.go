package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/login"
	"headgate.dev/headgate/internal/text"
)

func eventsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "Watch changes at a service",
		Long: `Events prints each change that is made through the API, until it is interrupted. If the
connection is lost, events reconnects and continues after the last change that it printed. "reset"
means that the service no longer has the changes since then: read the resources again. A tenant
sees only its own changes.`,
		Example: `  headgate events
  headgate events --after 4711 -o json`,
		Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), tableOrJSONFlag(c)
	after := c.Flags().Int64("after", 0, "print the changes after this `REVISION` (default: from now on)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		l, err := login.Find(*server)
		if err != nil {
			return err
		}
		client, err := l.Client(0)
		if err != nil {
			return err
		}
		ctx, stop := interrupted()
		defer stop()
		lost := func(err error) { a.note("headgate: connection to the service lost, reconnecting: %v", err) }
		return api.Events(ctx, client, *after, func(e api.Event) error { return a.printEvent(*output, e) }, lost)
	}
	return c
}

func (a *app) printEvent(f tableOrJSON, e api.Event) error {
	if f == "json" {
		return json.NewEncoder(a.out).Encode(e)
	}
	if e.Change == nil {
		_, err := fmt.Fprintf(a.out, "%d  reset\n", e.Revision)
		return err
	}
	_, err := fmt.Fprintln(text.Plain(a.out), strings.Join(changes.row(*e.Change), "  "))
	return err
}
