package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate/api/agents"
	"headgate/group"
	"headgate/probe"
	"headgate/probe/schedule"
	"headgate/unit"
)

// turnPatience is how long a measurement of the schedule waits for one that somebody has asked for.
const turnPatience = time.Second

// measuring is what this host measures, or lets be measured, for its controllers: one thing at a time,
// so that none is in another's way.
type measuring struct {
	turn chan struct{}

	mu  sync.Mutex
	id  string // of what the schedule had it do last
	end func() // ends that, and waits until it has
}

func newMeasuring() *measuring { return &measuring{turn: make(chan struct{}, 1), end: func() {}} }

// asked waits for the turn of what somebody has asked for.
func (m *measuring) asked(ctx context.Context) (release func(), err error) {
	select {
	case m.turn <- struct{}{}:
		return func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// scheduled is the turn of what the schedule says: what it said before is over.
func (m *measuring) scheduled(ctx context.Context, id string) (own context.Context, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
	select {
	case m.turn <- struct{}{}:
	case <-time.After(turnPatience):
		return nil, nil, errors.New("somebody has this host measure something else")
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	own, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	m.id, m.end = id, func() { cancel(); <-over }
	return own, sync.OnceFunc(func() { cancel(); <-m.turn; close(over) }), nil
}

// stop ends what the schedule has it do, if it is that.
func (m *measuring) stop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id == id {
		m.end()
	}
}

// probe measures: by the schedule, or, as somebody has asked for it, by the command that a person
// would use.
func (r *remoteAgent) probe(ctx context.Context, q *agents.ProbeQuestion, said func(*agents.ProbeAnswer)) {
	if len(q.Key) > 0 {
		said(r.probeScheduled(ctx, q))
		return
	}
	release, err := r.measuring.asked(ctx)
	if err != nil {
		return // nobody is there to be told
	}
	defer release()
	said(&agents.ProbeAnswer{Id: q.Id, State: "running"})
	out, err := r.app.probeByCommand(ctx, q.Measure, q.Peer)
	if err != nil {
		said(&agents.ProbeAnswer{Id: q.Id, State: "failed", Error: err.Error()})
		return
	}
	said(&agents.ProbeAnswer{Id: q.Id, State: "done", Result: out})
}

// probeScheduled measures within bounds. There may be a result beside an error.
func (r *remoteAgent) probeScheduled(ctx context.Context, q *agents.ProbeQuestion) *agents.ProbeAnswer {
	answer := &agents.ProbeAnswer{Id: q.Id, State: "done"}
	err := func() error {
		peer, err := probe.ParseAddress(q.Peer)
		if err != nil {
			return err
		}
		own, release, err := r.measuring.scheduled(ctx, q.Id)
		if err != nil {
			return err
		}
		defer release()
		answer.End = r.endOf(peer.Host, peer.Port, 0)
		child, err := r.app.startOnce(own, onceRequest{Key: q.Key, Bytes: unit.Bytes(q.Bytes), Time: time.Duration(q.TimeNs), Measure: q.Measure, Peer: q.Peer})
		if err != nil {
			return err
		}
		// It may have sent all that it might until it says what it has.
		answer.SentBytes = uint64(schedule.Cost(unit.Bytes(q.Bytes)))
		got, err := child.answer()
		if err = errors.Join(err, child.wait()); err != nil {
			return err
		}
		answer.SentBytes = uint64(got.Sent)
		if got.Report != nil {
			if answer.Result, err = json.Marshal(got.Report); err != nil {
				return err
			}
		}
		if got.Error != "" {
			return errors.New(got.Error)
		}
		return nil
	}()
	if err != nil {
		answer.State, answer.Error = "failed", err.Error()
	}
	return answer
}

// serveProbe lets another host measure to this one, by the schedule.
func (r *remoteAgent) serveProbe(ctx context.Context, q *agents.ProbeServe) *agents.ProbeServing {
	if len(q.Key) == 0 {
		r.measuring.stop(q.Id)
		return nil
	}
	answer := &agents.ProbeServing{Id: q.Id}
	address, err := probe.ParseAddress(q.Address)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	own, release, err := r.measuring.scheduled(ctx, q.Id)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	child, err := r.app.startOnce(own, onceRequest{Key: q.Key, Bytes: unit.Bytes(q.Bytes), Time: time.Duration(q.TimeNs), Port: address.Port})
	if err != nil {
		release()
		answer.Error = err.Error()
		return answer
	}
	got, err := child.answer()
	if err != nil {
		answer.Error = errors.Join(err, child.wait()).Error()
		release()
		return answer
	}
	go func() {
		defer release()
		if err := child.wait(); err != nil && own.Err() == nil {
			slog.Warn("a measurement to this host did not come to its end", "error", err)
		}
	}()
	answer.Port, answer.End = uint32(got.Port), r.endOf(q.Client, 0, got.Port)
	return answer
}

// endOf is what this host knows of its end of the path to a peer: the devices that packets pass, by
// all of their names, and the most that is let through there in the group that measurements are in.
// Ports that are not known are 0.
func (r *remoteAgent) endOf(peer string, port, own int) *agents.ProbeEnd {
	const discard = 9 // nothing is sent
	c, err := net.Dial("udp", net.JoinHostPort(peer, strconv.Itoa(discard)))
	if err != nil {
		return nil
	}
	defer c.Close()
	local, remote := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	end := &agents.ProbeEnd{}
	if end.Devices, err = passes(remote); err != nil {
		return nil
	}
	out := group.Packet{Proto: group.UDP, Src: local, SPort: uint16(own), Dst: remote, DPort: uint16(port)}
	in := group.Packet{Proto: group.UDP, Src: remote, SPort: uint16(port), Dst: local, DPort: uint16(own)}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if slices.Contains(end.Devices, s.Dev) {
			end.OutBps = lower(end.OutBps, most(s.Plan.Out, out))
			end.InBps = lower(end.InBps, most(s.Plan.In, in))
		}
	}
	names := r.altnames()
	for _, dev := range end.Devices {
		end.Devices = append(end.Devices, names[dev]...)
	}
	return end
}

// most is what a packet's group gets at the most, 0 if nothing is limited.
func most(t *group.Tree, p group.Packet) uint64 {
	if t == nil {
		return 0
	}
	least := uint64(t.Limit)
	for _, n := t.Classify(p); n >= 0; n = t.Nodes[n].Parent {
		least = lower(least, uint64(t.Nodes[n].Ceiling))
	}
	return least
}

// lower is the lower of two limits, of which 0 is none.
func lower(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// onceChild is a measurement under way, in a process of its own.
type onceChild struct {
	*exec.Cmd
	out  *json.Decoder
	rest io.Reader
	said *strings.Builder
}

func (a *app) startOnce(ctx context.Context, r onceRequest) (*onceChild, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &onceChild{Cmd: exec.CommandContext(ctx, self, "probe", "once"), said: &strings.Builder{}}
	c.Stderr = c.said
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if c.rest, err = c.StdoutPipe(); err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(c.rest)
	if err := c.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(r); err != nil {
		return nil, errors.Join(err, c.wait())
	}
	return c, nil
}

// answer is the next that it says.
func (c *onceChild) answer() (a onceAnswer, err error) {
	err = c.out.Decode(&a)
	return a, err
}

// wait waits for its end.
func (c *onceChild) wait() error {
	io.Copy(io.Discard, c.rest)
	if err := c.Wait(); err != nil {
		return fmt.Errorf("the measurement has ended: %w: %s", err, strings.TrimSpace(c.said.String()))
	}
	return nil
}
