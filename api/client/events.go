package client

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
)

// Event is one event of the service's event stream: a change of a resource, or "reset", which means that the
// service no longer has the changes since the last event.
type Event struct {
	Revision int64       `json:"revision"`
	Event    string      `json:"event"`
	Change   *AuditEntry `json:"change,omitempty"`
}

// reconnectDelay is the delay before a reconnect to the service.
const reconnectDelay = time.Second

// Events calls take for each change after a revision, and for each reset, until ctx ends; 0 is from now on. When
// the connection is lost it calls lost once, and reconnects. The client must have no timeout for requests. If the
// first connection fails, or the service rejects the client, Events returns an error.
func Events(ctx context.Context, c *Client, after int64, take func(Event) error, lost func(error)) error {
	for came, reported := false, false; ctx.Err() == nil; {
		p := &WatchEventsParams{}
		if after > 0 {
			p.LastEventID = &after
		}
		r, err := c.WatchEvents(ctx, p)
		if err == nil && r.StatusCode != http.StatusOK {
			_, err = Decode[struct{}](r, nil)
		} else if err == nil {
			came, reported = true, false
			err = readServerSentEvents(r.Body, func(id int64, kind string, data []byte) error {
				e := Event{Revision: id, Event: kind}
				after = max(after, id)
				switch kind {
				case "reset":
					after = id
				case "change":
					e.Change = &AuditEntry{}
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
		if take := (callbackError{}); errors.As(err, &take) {
			return take.error
		} else if ctx.Err() == nil && (!came || errors.Is(err, os.ErrPermission) || errors.Is(err, ErrInvalid)) {
			return fmt.Errorf("cannot watch events: %w", err)
		}
		if ctx.Err() == nil && !reported {
			lost(err)
			reported = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectDelay):
		}
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
