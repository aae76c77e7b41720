package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"
	"unicode"

	"headgate.dev/headgate/probe"
)

// RequestMeasurement has the server at o measure the path from itself to a peer. The format of
// request and result is agreed between the caller of RequestMeasurement and the server's Measure
// function. say receives progress texts. Beside an error, result may have what was measured before
// it.
func RequestMeasurement(ctx context.Context, o Options, peer probe.Address, request json.RawMessage, say func(string)) (result json.RawMessage, err error) {
	c, err := connect(ctx, o, func(_ context.Context, c *Client) error {
		c.l.longest = longestResult
		if err := c.l.write(message{Measure: &measure{Version, peer.String(), request}}); err != nil {
			return err
		}
		result, err = c.answer(o, say)
		return err
	})
	if err != nil {
		return result, err
	}
	c.Close()
	return result, nil
}

// answer waits for the result of a measurement.
func (c *Client) answer(o Options, say func(string)) (json.RawMessage, error) {
	for {
		// The server sends a line each second.
		c.conn.SetDeadline(time.Now().Add(idleTimeout))
		m, err := c.read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errors.New("server timed out: it does not respond")
		case err != nil:
			return nil, err
		case m.Measured != nil && m.Measured.Failed != "":
			return m.Measured.Result, errors.New(printable(m.Measured.Failed))
		case m.Measured != nil:
			return m.Measured.Result, nil
		case m.Wait != nil && o.OnWait != nil:
			o.OnWait(m.Wait.Before)
		case m.Progress != nil && m.Progress.Text != "":
			say(printable(m.Progress.Text))
		}
	}
}

// printable makes one line of s for a terminal. It removes control characters, so that
// text from another host cannot move the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, s)
}
