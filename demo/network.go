package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// networkPlay is a running demo of a network.
type networkPlay struct {
	deployment
	network  sites.Network
	uploads  *uploads
	granted  unit.Rate // what the program has reserved
	promises []sites.Promise
}

func newNetworkPlay(o Options, s stage) *networkPlay {
	return &networkPlay{deployment: deployment{Options: o, stage: s}, network: sites.New(o.Seed)}
}

// RunNetwork creates the network of two sites, goes through its steps, and removes it, also when ctx ends.
func RunNetwork(ctx context.Context, o Options) (result *NetworkResult, err error) {
	p := newNetworkPlay(o, newStage(o))
	err = p.stage.show(ctx, func(ctx context.Context) error {
		var err error
		result, err = p.run(ctx)
		return err
	})
	return result, err
}

func (p *networkPlay) run(ctx context.Context) (result *NetworkResult, err error) {
	release, err := awake.Start()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := p.build(ctx); err != nil {
		return nil, err
	}
	defer func() {
		p.stage.status("cleaning up")
		p.uploads.close()
		left, failed := p.clean()
		err = errors.Join(err, failed)
		switch {
		case result != nil:
			result.finish(left, err)
		case len(left) > 0:
			p.stage.say("", "NOT cleaned up: "+strings.Join(left, ", "))
		}
	}()
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(p.Log(stageWriter{p.stage})))
	machine := bench.Watch()
	err = p.perform(ctx)
	disturbed := machine.End()
	if err != nil {
		return nil, err
	}
	return &NetworkResult{Network: p.network, Promises: p.promises, Disturbed: disturbed}, nil
}

func (p *networkPlay) build(ctx context.Context, options ...lab.Option) error {
	return p.create(ctx, p.network.Topology(lab.UniqueName(prefix)), []string{
		"Two sites have two long paths between them, and six switches of Open vSwitch,",
		"all in network namespaces of this machine. This is what their ports say:"}, p.network.Picture(), options...)
}

// perform goes through the steps.
func (p *networkPlay) perform(ctx context.Context) error {
	steps := []struct {
		title, text string
		do          func(context.Context) error
	}{
		{"the bare network", "A controller leads the switches. Links and hosts are found.", p.bare},
		{"measure", "The hosts measure the paths between them, by a schedule. A provider limits one of the links to less than its port says.", p.measure},
		{"reserve", fmt.Sprintf("A program reserves bandwidth, is refused, and takes what it is offered. The file of the network lets %d %% of a long link be reserved.", sites.Reservable), p.reserve},
		{"lend", "The program's traffic is protected from a backup that sends as fast as the port allows. In the second third it sends a fifth of what it has reserved, and the rest is lent.", p.lend},
		{"carry", "An unmodified curl uploads over the long way, beside the backup: first as it is, then with a reservation that relay agents carry over both paths.", p.carry},
		{"repair", "The link that is in use is cut, and healed.", p.repair},
		{"prove", "What the reservations were promised, and what they got.", p.prove},
	}
	for i, s := range steps {
		p.stage.say("", fmt.Sprintf("[%d/%d] %s", i+1, len(steps), s.title))
		p.stage.say(wrapped(s.text)...)
		p.stage.status(fmt.Sprintf("%d/%d %s", i+1, len(steps), s.title))
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

// promise judges a promise, and says it.
func (p *networkPlay) promise(id, text, unit string, kind sites.Kind, promised, delivered float64) {
	one := kind.New(id, text, unit, promised, delivered)
	p.promises = append(p.promises, one)
	p.stage.say("  " + one.String())
}

// get reads a resource of the API as the operator.
func get[T any](ctx context.Context, c *client, path string) (out T, err error) {
	r, err := c.ask(ctx, http.MethodGet, path, "")
	if err != nil {
		return out, err
	}
	if r.Status != http.StatusOK {
		return out, fmt.Errorf("GET %s: %s", path, r.text())
	}
	return out, json.Unmarshal(r.Answer, &out)
}

// networkState is what the demo reads of the network.
type networkState struct {
	Settled  bool
	Switches []struct{ ID, Name string }
	Links    []struct {
		From, To struct {
			Switch string
			Port   uint32
		}
		Capacity int64  `json:"capacity_bps"`
		Source   string `json:"capacity_source"`
	}
	Relays []struct {
		Name  string
		Exits []struct{ Address string }
	}
	Redirection *struct{ Redirected int64 }
	Faults      []struct{ Kind, Message string }
}

func (p *networkPlay) state(ctx context.Context) (networkState, error) {
	return get[networkState](ctx, p.operator, "/v1/network")
}

// until reads the network until so returns true. It fails with what the network lacks after the timeout.
func (p *networkPlay) until(ctx context.Context, patience time.Duration, what string, so func(networkState) bool) (s networkState, err error) {
	for deadline := time.Now().Add(patience); ; {
		if s, err = p.state(ctx); err == nil && so(s) {
			return s, nil
		}
		if err == nil && time.Now().After(deadline) {
			return s, fmt.Errorf("timed out after %v: %s: %+v", patience, what, s)
		}
		if failed := p.processes[0].exitError(); failed != nil {
			return s, failed
		}
		if !sleep.Until(ctx, time.Now().Add(250*time.Millisecond)) {
			return s, ctx.Err()
		}
	}
}
