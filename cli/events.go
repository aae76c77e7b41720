package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/login"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/sleep"
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
		return a.events(ctx, client, *after, func(e event) error { return a.printEvent(*output, e) })
	}
	return c
}

// event is one event of the service's event stream.
type event struct {
	Revision int64           `json:"revision"`
	Event    string          `json:"event"`
	Change   *api.AuditEntry `json:"change,omitempty"`
}

func (a *app) printEvent(f tableOrJSON, e event) error {
	if f == "json" {
		return json.NewEncoder(a.out).Encode(e)
	}
	if e.Change == nil {
		_, err := fmt.Fprintf(a.out, "%d  reset\n", e.Revision)
		return err
	}
	_, err := fmt.Fprintln(a.out, strings.Join(auditRow(*e.Change), "  "))
	return err
}

// eventsReconnectDelay is the delay before a reconnect to the service.
const eventsReconnectDelay = time.Second

// events calls take for each change and reset until ctx ends. It reconnects when the connection
// is lost.
func (a *app) events(ctx context.Context, client *api.Client, after int64, take func(event) error) error {
	for came, lost := false, false; ctx.Err() == nil; {
		p := &api.WatchEventsParams{}
		if after > 0 {
			p.LastEventID = &after
		}
		r, err := client.WatchEvents(ctx, p)
		if err == nil && r.StatusCode != http.StatusOK {
			_, err = api.Decode[struct{}](r, nil)
		} else if err == nil {
			came, lost = true, false
			err = readServerSentEvents(r.Body, func(id int64, kind string, data []byte) error {
				e := event{Revision: id, Event: kind}
				after = max(after, id)
				switch kind {
				case "reset":
					after = id
				case "change":
					e.Change = &api.AuditEntry{}
					if err := json.Unmarshal(data, e.Change); err != nil {
						return err
					}
				default: // hello, quiet
					return nil
				}
				if err := take(e); err != nil {
					return callbackError{err}
				}
				return nil
			})
			r.Body.Close()
		}
		var mistakes config.Errors
		if take := (callbackError{}); errors.As(err, &take) {
			return take.error
		} else if ctx.Err() == nil && (!came || errors.Is(err, os.ErrPermission) || errors.As(err, &mistakes)) {
			return fmt.Errorf("cannot watch events: %w", err)
		}
		if ctx.Err() == nil && !lost {
			a.note("headgate: connection to the service lost, reconnecting: %v", err)
			lost = true
		}
		sleep.Until(ctx, time.Now().Add(eventsReconnectDelay))
	}
	return nil
}

// callbackError wraps an error that the caller's take returned, to tell it from errors of the stream.
type callbackError struct{ error }

// readServerSentEvents reads server-sent events and calls take for each. It returns io.EOF at the end of the stream.
func readServerSentEvents(from io.Reader, take func(id int64, kind string, data []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var id int64
	var kind, data string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			kind = value
		case "data":
			data += value
		case "":
			if err := take(id, kind, []byte(data)); err != nil {
				return err
			}
			kind, data = "", ""
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
