package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/schedule"
	"headgate/probe/session"
	"headgate/unit"
)

// Bounds of a scheduled measurement, chosen by Headgate.
const (
	// handshakeTime is the time for handshakes, added to that of both directions.
	handshakeTime = 10 * time.Second
	// connectTimeout is the time in which the client has to connect.
	connectTimeout = 10 * time.Second
	// maxControlBytes is an upper bound of the bytes on the control connection for one packet of a train
	// that is sent three times.
	maxControlBytes unit.Bytes = 40
	// maxDialBytes is an upper bound of the bytes that a session sends before its first train: some packets
	// of each size, and a handshake.
	maxDialBytes unit.Bytes = 100_000
)

// onceRequest is an agent's request to a child process: measure to a peer or, without a peer, serve a
// client that has the key. The request is the first line of standard input. The agent keeps standard
// input open as long as it waits for the result.
type onceRequest struct {
	Key   []byte        `json:"key"`
	Bytes unit.Bytes    `json:"bytes"` // of each direction
	Time  time.Duration `json:"time"`  // of each direction
	Port  int           `json:"port,omitempty"`

	Measure string `json:"measure,omitempty"`
	Peer    string `json:"peer,omitempty"`
}

// onceAnswer is a line of the child's output: the port that it listens on, or the result.
type onceAnswer struct {
	Port   int          `json:"port,omitempty"`
	Report *path.Report `json:"report,omitempty"`
	Sent   unit.Bytes   `json:"sent,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// probeChildCommand is the child process that an agent runs for a measurement, so that other work of the
// agent does not disturb the measurement. The child exits when the agent exits or dies.
func probeChildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "once", Short: "Run one measurement for an agent", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in := bufio.NewReader(a.in)
			line, err := in.ReadBytes('\n')
			if err != nil {
				return err
			}
			var r onceRequest
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			if len(r.Key) == 0 || r.Bytes == 0 || r.Time <= 0 {
				return errors.New("missing key, bytes or time in the request")
			}
			ctx, end := context.WithTimeout(c.Context(), r.caps().Time+connectTimeout)
			defer end()
			go func() {
				io.Copy(io.Discard, in)
				end()
			}()
			if r.Peer == "" {
				return r.serve(ctx, end, a.out)
			}
			return r.measure(ctx, a.out)
		},
	}
}

// caps returns the limits of what client and server send.
func (r onceRequest) caps() session.Caps {
	return session.Caps{Bytes: r.Bytes, Rate: session.Default.Rate, Time: 2*r.Time + handshakeTime}
}

// serve serves one client.
func (r onceRequest) serve(ctx context.Context, end func(), out io.Writer) error {
	s := &session.Server{Auth: session.Auth{Key: r.Key}, Caps: r.caps(), Log: slog.New(slog.DiscardHandler), Served: end}
	err := s.Listen(ctx, fmt.Sprintf(":%d", r.Port))
	if r.Port == probe.Port && errors.Is(err, syscall.EADDRINUSE) {
		err = s.Listen(ctx, ":0") // "headgate probe serve" uses the port on this host
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(onceAnswer{Port: int(s.Addr().Port())}); err != nil {
		return err
	}
	return s.Serve(ctx)
}

// measure measures both directions.
func (r onceRequest) measure(ctx context.Context, out io.Writer) error {
	answer := onceAnswer{Sent: maxDialBytes}
	report, sent, err := r.run(ctx)
	if report != nil {
		answer.Report, answer.Sent = report, sent
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(answer)
}

func (r onceRequest) run(ctx context.Context) (*path.Report, unit.Bytes, error) {
	caps := r.caps()
	j, err := request{Measure: r.Measure, Bytes: r.Bytes, Time: r.Time}.bounded(caps)
	if err != nil {
		return nil, 0, err
	}
	peer, err := probe.ParseAddress(r.Peer)
	if err != nil {
		return nil, 0, err
	}
	client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: session.Auth{Key: r.Key}, QueueTimeout: connectTimeout, Caps: &caps})
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	j.say = func(string, ...any) {}
	j.send = func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
		if _, _, said := client.Spent(); said+maxControlBytes*unit.Bytes(t.Count()) > schedule.Control(r.Bytes) {
			return probe.Sample{}, fmt.Errorf("control traffic of %s has reached its limit: raise bytes", sizeText(float64(said)))
		}
		return client.Send(ctx, d, t)
	}
	report, err := j.run(ctx, client, peer.String())
	o, i, said := client.Spent()
	return &report, o + i + said, err
}
