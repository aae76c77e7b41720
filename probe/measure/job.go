package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

// Job is a measurement of a path.
type Job struct {
	Directions []probe.Direction
	Method     path.Method
	// Time bounds the measurement of each direction.
	Time time.Duration
	// OnProgress receives short texts about the progress. It may be nil.
	OnProgress func(text string)
	// Enough reports whether a direction can end before its method ends. It may be nil.
	Enough func([]probe.Sample) bool
	// Verify checks a direction's answer until a deadline, and can change the answer. It may be nil.
	Verify func(deadline time.Time, d probe.Direction, samples []probe.Sample, a *path.Answer) error
	// Send sends one train. nil is the client's Send.
	Send SendTrain
	// Done is called after each direction. It may be nil.
	Done func(probe.Direction, []probe.Sample, *path.Answer) error
}

// Path opens a session with a host and runs a job, of the command that the log names. The report is nil
// if the measurement did not start. With a later error, the report has the results until then.
func Path(ctx context.Context, h Host, command string, j Job, o Options) (*path.Report, error) {
	client, err := o.Dial(ctx, h)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	log, closeLog, err := o.CreateLog(command, h.Name, client)
	if err != nil {
		return nil, err
	}
	j.OnProgress, j.Send = o.OnProgress, Logged(client, log)
	out, err := j.Run(ctx, client, h.Name)
	return &out, errors.Join(err, closeLog())
}

// Run measures with a client. With an error, the report has the results until then.
func (j Job) Run(ctx context.Context, client *session.Client, target string) (out path.Report, failure error) {
	if j.Send == nil {
		j.Send = client.Send
	}
	out = path.Report{Host: target, Peer: client.Peer.String(), RTT: client.RTT, Directions: map[probe.Direction]*path.Answer{}}
	for _, d := range j.Directions {
		begun, before := time.Now(), sentIn(client, d)
		spent := unit.Bytes(0)
		next := func(samples []probe.Sample) (probe.Train, bool) {
			if j.Enough != nil && j.Enough(samples) {
				return probe.Train{}, false
			}
			sent := sentIn(client, d)
			m, ok := j.Method.Without(sent - min(sent, before+spent))
			if !ok {
				return probe.Train{}, false
			}
			return m.Next(samples)
		}
		send := func(ctx context.Context, t probe.Train) (probe.Sample, error) {
			if j.OnProgress != nil {
				j.OnProgress(fmt.Sprintf("%s: %s, %d packets, %s sent", d, t.Purpose, t.Count(), spent))
			}
			left, _ := j.Method.Without(sentIn(client, d) - before)
			client.Limit(max(left.Budget, 1))
			return j.Send(ctx, d, t)
		}
		seen := func(s *probe.Sample) { spent += s.Bytes() }
		samples, err := path.Run(ctx, next, send, j.Time, seen)
		answer := j.Method.Estimate(samples)
		if err == nil && j.Method.Credits {
			err = j.Method.Drain(ctx, samples, &answer, send, j.Time-time.Since(begun), seen)
		}
		client.Limit(0)
		if err == nil && j.Verify != nil {
			err = j.Verify(begun.Add(j.Time), d, samples, &answer)
		}
		answer.Seconds = time.Since(begun).Seconds()
		out.Directions[d] = &answer
		if j.Done != nil {
			failure = errors.Join(failure, j.Done(d, samples, &answer))
		}
		if err != nil {
			out.Failed = err.Error()
			failure = errors.Join(failure, err)
			break
		}
	}
	_, _, out.Control = client.Spent()
	return out, failure
}

// sentIn returns what a client has sent or received of trains in a direction, with those that were sent again.
func sentIn(c *session.Client, d probe.Direction) unit.Bytes {
	out, in, _ := c.Spent()
	if d == probe.In {
		return in
	}
	return out
}
