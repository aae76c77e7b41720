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

// Ours.
const (
	// onceAround is for handshakes, beside what both directions may take.
	onceAround = 10 * time.Second
	// onceWaits is how long a client may take to come.
	onceWaits = 10 * time.Second
	// controlPacket is more than the control connection has of a packet, in a train that is sent three times.
	controlPacket unit.Bytes = 40
	// dialled is more than a session has sent that fails before its first train: some packets of each
	// size, and a handshake.
	dialled unit.Bytes = 100_000
)

// onceRequest is what an agent has a process of its own do: measure to a peer, or, without one, let
// who has the key measure to this host. It is the first line of standard input, which stays open until
// nobody waits for it any more.
type onceRequest struct {
	Key   []byte        `json:"key"`
	Bytes unit.Bytes    `json:"bytes"` // of each direction
	Time  time.Duration `json:"time"`  // of each direction
	Port  int           `json:"port,omitempty"`

	Measure string `json:"measure,omitempty"`
	Peer    string `json:"peer,omitempty"`
}

// onceAnswer is a line that it says: where it listens, or what it found.
type onceAnswer struct {
	Port   int          `json:"port,omitempty"`
	Report *path.Report `json:"report,omitempty"`
	Sent   unit.Bytes   `json:"sent,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// probeOnceCommand is the child that an agent runs for a measurement: what the agent does besides does not
// disturb that, and when the agent ends, however it does, so does the child.
func probeOnceCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "once", Short: "One measurement of an agent", Hidden: true, Args: cobra.NoArgs,
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
				return errors.New("a measurement needs a key, bytes and time")
			}
			ctx, end := context.WithTimeout(c.Context(), r.caps().Time+onceWaits)
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

// caps bound what either end sends.
func (r onceRequest) caps() session.Caps {
	return session.Caps{Bytes: r.Bytes, Rate: session.Default.Rate, Time: 2*r.Time + onceAround}
}

// serve lets one client measure.
func (r onceRequest) serve(ctx context.Context, end func(), out io.Writer) error {
	s := &session.Server{Auth: session.Auth{Key: r.Key}, Caps: r.caps(), Log: slog.New(slog.DiscardHandler), Served: end}
	err := s.Listen(ctx, fmt.Sprintf(":%d", r.Port))
	if r.Port == probe.Port && errors.Is(err, syscall.EADDRINUSE) {
		err = s.Listen(ctx, ":0") // "headgate probe serve" runs here, too
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
	answer := onceAnswer{Sent: dialled}
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
	client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: session.Auth{Key: r.Key}, Patience: onceWaits, Caps: &caps})
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	j.say = func(string, ...any) {}
	j.send = func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
		if _, _, said := client.Spent(); said+controlPacket*unit.Bytes(t.Count()) > schedule.Control(r.Bytes) {
			return probe.Sample{}, fmt.Errorf("the ends have said %s about it, and what they may say is used up: give it more bytes", sizeText(float64(said)))
		}
		return client.Send(ctx, d, t)
	}
	report, err := j.run(ctx, client, peer.String())
	o, i, said := client.Spent()
	return &report, o + i + said, err
}
