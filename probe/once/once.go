package once

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

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
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
	// fastest is above the rate of any link.
	fastest = 1000 * unit.Gbit
	// maxDialBytes is an upper bound of the bytes that a session sends before its first train: some packets
	// of each size, and a handshake.
	maxDialBytes unit.Bytes = 100_000
)

// Request asks the child to measure to a peer or, without a peer, to serve one client that has the key.
type Request struct {
	Key   []byte        `json:"key"`
	Bytes unit.Bytes    `json:"bytes"` // of each direction
	Time  time.Duration `json:"time"`  // of each direction
	Port  int           `json:"port,omitempty"`

	Measure string    `json:"measure,omitempty"`
	Peer    string    `json:"peer,omitempty"`
	Nominal unit.Rate `json:"nominal,omitempty"` // of the path, see path.Method
}

// Answer is the port that a serving child listens on, or the result.
type Answer struct {
	Port   int          `json:"port,omitempty"`
	Report *path.Report `json:"report,omitempty"`
	Sent   unit.Bytes   `json:"sent,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// Run reads the request, measures or serves, and writes the answer. It ends when in does.
func Run(ctx context.Context, input io.Reader, out io.Writer) error {
	in := bufio.NewReader(input)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if len(r.Key) == 0 || r.Bytes == 0 || r.Time <= 0 {
		return errors.New("missing key, bytes or time in the request")
	}
	ctx, end := context.WithTimeout(ctx, r.caps().Time+connectTimeout)
	defer end()
	go func() {
		io.Copy(io.Discard, in)
		end()
	}()
	if r.Peer == "" {
		return r.serve(ctx, end, out)
	}
	return r.measure(ctx, out)
}

// caps returns the limits of what client and server send.
func (r Request) caps() session.Caps {
	rate := session.Default.Rate
	if r.Bytes >= session.Default.Bytes { // burst credits of gigabytes
		rate = fastest
	}
	return session.Caps{Bytes: r.Bytes, Rate: rate, Time: 2*r.Time + handshakeTime}
}

// serve serves one client.
func (r Request) serve(ctx context.Context, end func(), out io.Writer) error {
	s := &session.Server{Auth: peerauth.Credentials{Key: r.Key}, Caps: r.caps(), Log: slog.New(slog.DiscardHandler), Served: end}
	err := s.Listen(ctx, fmt.Sprintf(":%d", r.Port))
	if r.Port == probe.Port && errors.Is(err, syscall.EADDRINUSE) {
		err = s.Listen(ctx, ":0") // "headgate probe serve" uses the port on this host
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(Answer{Port: int(s.Addr().Port())}); err != nil {
		return err
	}
	return s.Serve(ctx)
}

// measure measures both directions.
func (r Request) measure(ctx context.Context, out io.Writer) error {
	answer := Answer{Sent: maxDialBytes}
	report, sent, err := r.run(ctx)
	if report != nil {
		answer.Report, answer.Sent = report, sent
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(answer)
}

func (r Request) run(ctx context.Context) (*path.Report, unit.Bytes, error) {
	caps := r.caps()
	j, err := measure.Request{Measure: r.Measure, Nominal: r.Nominal, Bytes: r.Bytes, Time: r.Time}.Job(caps)
	if err != nil {
		return nil, 0, err
	}
	peer, err := probe.ParseAddress(r.Peer)
	if err != nil {
		return nil, 0, err
	}
	client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: peerauth.Credentials{Key: r.Key}, QueueTimeout: connectTimeout, Caps: &caps})
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	j.Send = func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
		if _, _, said := client.Spent(); said+maxControlBytes*unit.Bytes(t.Count()) > schedule.Control(r.Bytes) {
			return probe.Sample{}, fmt.Errorf("control traffic of %s has reached its limit: raise bytes", probe.FormatBytes(float64(said)))
		}
		return client.Send(ctx, d, t)
	}
	report, err := j.Run(ctx, client, peer.String())
	o, i, said := client.Spent()
	return &report, o + i + said, err
}
