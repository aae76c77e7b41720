package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"
	"unicode"

	"headgate/probe"
)

// Ask has the server at o measure the path from itself to a peer. request and what
// comes back are between those who call Ask and what the server measures with. say is
// told how it stands. There may be a result beside an error: what was measured until
// then.
func Ask(ctx context.Context, o Options, peer probe.Address, request json.RawMessage, say func(string)) (result json.RawMessage, err error) {
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

// answer waits for it.
func (c *Client) answer(o Options, say func(string)) (json.RawMessage, error) {
	for {
		// It says something each second.
		c.conn.SetDeadline(time.Now().Add(silence))
		m, err := c.read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errors.New("the server has vanished: it does not answer any more")
		case err != nil:
			return nil, err
		case m.Measured != nil && m.Measured.Failed != "":
			return m.Measured.Result, errors.New(printable(m.Measured.Failed))
		case m.Measured != nil:
			return m.Measured.Result, nil
		case m.Wait != nil && o.Waiting != nil:
			o.Waiting(m.Wait.Before)
		case m.Progress != nil && m.Progress.Text != "":
			say(printable(m.Progress.Text))
		}
	}
}

// printable is one line for a terminal: another host's text moves no cursor there.
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
