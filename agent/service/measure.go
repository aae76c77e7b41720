package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/route"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/once"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// turnTimeout is how long a scheduled measurement waits for a requested one to end.
const turnTimeout = time.Second

// measurements runs the measurements that the controllers request.
type measurements struct {
	turns   *turns
	command func(ctx context.Context, args ...string) (*exec.Cmd, error)
	// states returns the newest state of the devices that the agent shapes.
	states   func() []shaper.State
	altNames func() group.AltNames
}

// turns serializes the measurements in which this host takes part for its controllers, as client
// or as server, so that they do not disturb each other.
type turns struct {
	turn chan struct{}

	mu  sync.Mutex
	id  string // the last scheduled measurement
	end func() // cancels that measurement and waits until it has ended
}

func newTurns() *turns {
	return &turns{turn: make(chan struct{}, 1), end: func() {}}
}

// acquireRequested waits for the turn of a measurement that a client requested.
func (t *turns) acquireRequested(ctx context.Context) (release func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// acquireScheduled waits for the turn of a scheduled measurement, after ending the scheduled measurement
// before it.
func (t *turns) acquireScheduled(ctx context.Context, id string) (own context.Context, release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
	select {
	case t.turn <- struct{}{}:
	case <-time.After(turnTimeout):
		return nil, nil, errors.New("host is busy with another measurement")
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	own, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	t.id, t.end = id, func() { cancel(); <-over }
	return own, sync.OnceFunc(func() { cancel(); <-t.turn; close(over) }), nil
}

// stop ends the scheduled measurement that has this identifier.
func (t *turns) stop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == id {
		t.end()
	}
}

// probe runs a measurement: a scheduled one has a key; a requested one runs "headgate probe" as a
// user would.
func (m *measurements) probe(ctx context.Context, q *agents.ProbeQuery, answer func(*agents.ProbeAnswer)) error {
	if len(q.Key) > 0 {
		answer(m.probeScheduled(ctx, q))
		return nil
	}
	release, err := m.turns.acquireRequested(ctx)
	if err != nil {
		return err
	}
	defer release()
	answer(&agents.ProbeAnswer{Id: q.Id, State: "running"})
	out, err := m.probeByCommand(ctx, q.Measure, q.Peer)
	if err != nil {
		answer(&agents.ProbeAnswer{Id: q.Id, State: "failed", Error: err.Error()})
		return nil
	}
	answer(&agents.ProbeAnswer{Id: q.Id, State: "done", Result: out})
	return nil
}

// probeScheduled runs a measurement within the budget of the schedule. The answer may have both a
// result and an error.
func (m *measurements) probeScheduled(ctx context.Context, q *agents.ProbeQuery) *agents.ProbeAnswer {
	answer := &agents.ProbeAnswer{Id: q.Id, State: "done"}
	err := func() error {
		peer, err := probe.ParseAddress(q.Peer)
		if err != nil {
			return err
		}
		own, release, err := m.turns.acquireScheduled(ctx, q.Id)
		if err != nil {
			return err
		}
		defer release()
		answer.End = m.endOf(peer.Host, peer.Port, 0)
		child, err := m.startOnce(own, once.Request{Key: q.Key, Bytes: unit.Bytes(q.Bytes), Time: time.Duration(q.TimeNs), Measure: q.Measure, Peer: q.Peer, Nominal: unit.Rate(q.NominalBps)})
		if err != nil {
			return err
		}
		// Until the child reports what it sent, assume that it has sent the whole budget.
		answer.SentBytes = uint64(schedule.Cost(unit.Bytes(q.Bytes)))
		got, err := child.Answer()
		if err = errors.Join(err, child.Wait()); err != nil {
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

// serve starts the server side of a scheduled measurement from another host to this one. A
// request without a key stops it, and is not answered.
func (m *measurements) serve(ctx context.Context, q *agents.ProbeServe, answer func(*agents.ProbeServing)) error {
	if len(q.Key) == 0 {
		m.turns.stop(q.Id)
		return nil
	}
	port, end, err := m.startServer(ctx, q)
	out := &agents.ProbeServing{Id: q.Id, Port: uint32(port), End: end}
	if err != nil {
		out.Error = err.Error()
	}
	answer(out)
	return nil
}

// startServer starts the server of a scheduled measurement, and returns its port and this host's end of
// the path.
func (m *measurements) startServer(ctx context.Context, q *agents.ProbeServe) (port int, end *agents.ProbeEnd, err error) {
	address, err := probe.ParseAddress(q.Address)
	if err != nil {
		return 0, nil, err
	}
	own, release, err := m.turns.acquireScheduled(ctx, q.Id)
	if err != nil {
		return 0, nil, err
	}
	child, err := m.startOnce(own, once.Request{Key: q.Key, Bytes: unit.Bytes(q.Bytes), Time: time.Duration(q.TimeNs), Port: address.Port})
	if err != nil {
		release()
		return 0, nil, err
	}
	got, err := child.Answer()
	if err != nil {
		err = errors.Join(err, child.Wait())
		release()
		return 0, nil, err
	}
	go func() {
		defer release()
		if err := child.Wait(); err != nil && own.Err() == nil {
			slog.Warn("measurement to this host failed", "error", err)
		}
	}()
	return got.Port, m.endOf(q.Client, 0, got.Port), nil
}

// endOf describes this host's end of the path to a peer: the devices on the path, with all of their
// names, and the lowest limit that applies there to the group of the measurement's packets.
// Unknown ports are 0.
func (m *measurements) endOf(peer string, port, own int) *agents.ProbeEnd {
	const discard = 9 // the port of the discard service; no packet is sent
	c, err := net.Dial("udp", net.JoinHostPort(peer, strconv.Itoa(discard)))
	if err != nil {
		return nil
	}
	defer c.Close()
	local, remote := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), c.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	end := &agents.ProbeEnd{}
	if end.Devices, err = route.Devices(remote); err != nil {
		return nil
	}
	out := group.Packet{Proto: group.UDP, Src: local, SPort: uint16(own), Dst: remote, DPort: uint16(port)}
	in := group.Packet{Proto: group.UDP, Src: remote, SPort: uint16(port), Dst: local, DPort: uint16(own)}
	for _, s := range m.states() {
		if slices.Contains(end.Devices, s.Dev) {
			end.OutBps = lower(end.OutBps, lowestLimit(s.Plan.Out, out))
			end.InBps = lower(end.InBps, lowestLimit(s.Plan.In, in))
		}
	}
	names := m.altNames()
	for _, dev := range end.Devices {
		end.Devices = append(end.Devices, names[dev]...)
	}
	return end
}

// lowestLimit returns the lowest of the limit and the ceilings that apply to a packet, 0 for no limit.
func lowestLimit(t *group.Tree, p group.Packet) uint64 {
	if t == nil {
		return 0
	}
	least := uint64(t.Limit)
	for _, n := t.Classify(p); n >= 0; n = t.Nodes[n].Parent {
		least = lower(least, uint64(t.Nodes[n].Ceiling))
	}
	return least
}

// lower returns the lower of two limits, where 0 means no limit.
func lower(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// startOnce starts a measurement in a child process.
func (m *measurements) startOnce(ctx context.Context, r once.Request) (*once.Process, error) {
	c, err := m.command(ctx, "probe", "once")
	if err != nil {
		return nil, err
	}
	return once.Start(c, r)
}

// probeByCommand runs "headgate probe" as a process of its own, which may take minutes, and returns its
// result as JSON.
func (m *measurements) probeByCommand(ctx context.Context, what, peer string) ([]byte, error) {
	c, err := m.command(ctx, "probe", what, "-o", "json", "--", peer)
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return out, nil
}
