package measure

import (
	"context"
	"fmt"
	"os"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/session"
)

// Host is a peer of a measurement, with the name that the user gave it.
type Host struct {
	Name string
	probe.Address
}

// ParseHost parses a name with an optional port.
func ParseHost(name string) (Host, error) {
	a, err := probe.ParseAddress(name)
	return Host{name, a}, err
}

// Options of a measurement.
type Options struct {
	// Session has the credentials, and the version of IP. The measurement sets the rest.
	Session session.Options
	// Log is the file for the samples, which Replay reads. "" is no log.
	Log string
	// OnProgress receives short texts about the progress. It may be nil.
	OnProgress func(text string)
}

// Dial opens a session with a host.
func (o Options) Dial(ctx context.Context, h Host) (*session.Client, error) {
	s := o.Session
	s.Host, s.Port = h.Host, h.Port
	s.OnWait = func(n int) { o.progress("waiting: %d measurements ahead", n) }
	return session.Dial(ctx, s)
}

func (o Options) progress(format string, args ...any) {
	if o.OnProgress != nil {
		o.OnProgress(fmt.Sprintf(format, args...))
	}
}

// CreateLog creates the log of a command. Without Options.Log the log is nil.
func (o Options) CreateLog(command, host string, c *session.Client) (*probe.Log, func() error, error) {
	if o.Log == "" {
		return nil, func() error { return nil }, nil
	}
	w, err := os.Create(o.Log)
	if err != nil {
		return nil, nil, err
	}
	log, err := probe.NewLog(w, probe.LogHeader{Started: time.Now(), Host: host, Command: command, MTU: max(c.MTU[probe.Out], c.MTU[probe.In]), RTT: c.RTT})
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return log, w.Close, nil
}

// SendTrain sends one train in a direction and waits for the sample.
type SendTrain func(context.Context, probe.Direction, probe.Train) (probe.Sample, error)

// Logged returns a SendTrain that uses a client, and writes the samples to log unless log is nil.
func Logged(c *session.Client, log *probe.Log) SendTrain {
	if log == nil {
		return c.Send
	}
	return func(ctx context.Context, d probe.Direction, t probe.Train) (probe.Sample, error) {
		s, err := c.Send(ctx, d, t)
		if err == nil {
			err = log.Add(d, &s)
		}
		return s, err
	}
}
