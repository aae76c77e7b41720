package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// discoveryCase is a network that is to be found.
type discoveryCase struct {
	id   string
	what string
	most bench.Target
	// file is the lab of real switches; "" is switches in memory.
	file string
}

var discoveries = []discoveryCase{
	{"discovery/reservations", "six switches in a tree, five links, ten hosts", found1, "examples/lab/reservations.yaml"},
	{"discovery/relay", "six switches in a ring with two stubs, six links, four hosts", found1, "examples/lab/relay.yaml"},
	{"discovery/memory", "200 switches in memory with 800 links", found3, ""},
}

// manySwitches is the network of discovery/memory: a link is a direction of a cable.
var manySwitches = inmemory.Network{Switches: 200, Cables: 400, Hosts: 200, Seed: 1, Controllers: []string{"127.0.0.1:" + controllers.OpenFlowPort}}

func discoveryCases() (out []bench.Case) {
	for n, d := range discoveries {
		out = append(out, bench.Case{
			Name: d.id, Takes: bench.Takes(6*time.Second, 2*time.Minute), Run: d.run, Alongside: together("discovery", n/2),
			Claims: []bench.Claim{
				bench.NewClaim(d.id+"/complete", "until exactly the switches, links and ports of hosts of the network are shown: "+d.what, d.most, osKen),
				bench.NewClaim(d.id+"/wrong", "answers with a switch, link or port of hosts that does not exist, or without one, in the time after that", wrong, osKen),
			},
		})
	}
	return out
}

// observeTopology is os-ken's topology application.
var observeTopology = method{name: osKen, start: startTopology}

func (d discoveryCase) run(ctx context.Context, r *bench.Run) error {
	repeats, watched := bench.Pick(r.Quick, 1, 5), bench.Pick(r.Quick, 2*time.Second, 10*time.Second)
	err := d.measure(ctx, r.Sheet(bench.Ours), ours, repeats, watched)
	if err != nil || r.Quick && !r.Few {
		return err
	}
	if err := d.measure(ctx, r.Sheet(osKen), observeTopology, min(repeats, 3), watched); err != nil {
		r.Sheet(osKen).Fail(err)
	}
	return ctx.Err()
}

// measure finds the network several times. The worst counts.
func (d discoveryCase) measure(ctx context.Context, sheet *bench.Sheet, m method, repeats int, watched time.Duration) error {
	var took []float64
	worst, answers, wrongs := 0.0, 0, 0
	for range repeats {
		one, err := d.once(ctx, m, watched)
		if err != nil {
			return err
		}
		took, worst = append(took, one.took.Seconds()), max(worst, one.took.Seconds())
		answers, wrongs = answers+one.answers, wrongs+one.wrong
		if one.why != "" {
			sheet.Note(d.id+"/wrong", "%s", one.why)
		}
	}
	sheet.Set(d.id+"/complete", worst)
	sheet.Set(d.id+"/wrong", float64(wrongs))
	sheet.Note(d.id+"/complete", "the worst of %d, median %s s", len(took), bench.Number(bench.Median(took)))
	sheet.Note(d.id+"/wrong", "of %d answers", answers)
	sheet.Keep("seconds", took)
	return ctx.Err()
}

// finding is how a network was found.
type finding struct {
	took           time.Duration
	answers, wrong int
	why            string
}

// discoveryLimit is how long a network may take to be found.
const discoveryLimit = 60 * time.Second

func (d discoveryCase) once(ctx context.Context, m method, watched time.Duration) (f finding, err error) {
	if d.file == "" {
		return findMemory(ctx, m, watched)
	}
	t, err := seedNetwork(d.file)
	if err != nil {
		return f, fmt.Errorf("run the bench in the source tree: %w", err)
	}
	n, err := m.raise(ctx, t)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	began, err := n.attach(ctx, controllerNode)
	if err != nil {
		return f, err
	}
	return find(ctx, n.place, n.runner, expectedOf(t), began, watched)
}

// seedNetwork returns the lab of a file, with switches that only a controller programs.
func seedNetwork(file string) (*lab.Topology, error) {
	t, err := lab.Load(file)
	if err != nil {
		return nil, err
	}
	t.Name, t.Flows, t.Timeline = lab.UniqueName("fabric"), nil, nil
	// The file of the relay's network has a node of its own for a controller.
	for i, n := range t.Nodes {
		if n.Name == "controller" {
			t.Nodes[i].Name = controllerNode
		}
	}
	controlled(t, controllerNode)
	return t, nil
}

// findMemory lets a controller find switches in memory, in a namespace of its own.
func findMemory(ctx context.Context, m method, watched time.Duration) (f finding, err error) {
	l, err := lab.Up(ctx, controllerAlone())
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return findMemoryAt(ctx, controllers.Alone(l.Node(controllerNode)), m, watched)
}

// controllerAlone is a node for a controller, and another, because a lab has links.
func controllerAlone() *lab.Topology {
	return &lab.Topology{
		Name: lab.UniqueName("fabric"), Nodes: []lab.NodeSpec{{Name: controllerNode}, {Name: "other"}},
		Links: []lab.LinkSpec{{Ends: [2]string{controllerNode, "other"}}},
	}
}

func findMemoryAt(ctx context.Context, at controllers.Seat, m method, watched time.Duration) (f finding, err error) {
	var p *controllers.Place
	var r *runner
	if m.start == nil {
		p, err = controllers.Start(ctx, controllers.AcceptSwitches, at)
	} else {
		r, err = m.start(ctx, at.Do)
	}
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, r.close(), p.Close()) }()
	o, err := inmemory.Start(at.Do)
	if err != nil {
		return f, err
	}
	defer o.Close()
	began := time.Now()
	if _, err := o.Tell(inmemory.Order{Do: "start", Network: &manySwitches}); err != nil {
		return f, err
	}
	return find(ctx, p, r, expectedIn(manySwitches.Plan()), began, watched)
}

// find waits until a controller knows a network, and watches for some time whether it still does.
func find(ctx context.Context, p *controllers.Place, r *runner, want expected, began time.Time, watched time.Duration) (finding, error) {
	if r != nil {
		return r.find(ctx, want, traffic.MonotonicNow()-int64(time.Since(began)), watched)
	}
	c := p.Controllers[0]
	took, err := completeAt(ctx, c, want, began, discoveryLimit)
	f := finding{took: took}
	for end := time.Now().Add(watched); err == nil && time.Now().Before(end); {
		got, failed := c.Show(ctx)
		if failed != nil {
			return f, failed
		}
		f.answers++
		if wrong := want.differs(shownBy(got)); wrong != "" {
			f.wrong, f.why = f.wrong+1, wrong
		}
	}
	return f, err
}

// find reads what the application prints at each change, until it is what is wanted, and for some time after that.
func (r *runner) find(ctx context.Context, want expected, began int64, watched time.Duration) (f finding, err error) {
	type line struct {
		At    int64    `json:"at"`
		Shown expected `json:"shown"`
	}
	lines := make(chan line)
	go func() {
		defer close(lines)
		for r.lines.Scan() {
			var l line
			if json.Unmarshal(r.lines.Bytes(), &l) == nil {
				select {
				case lines <- l:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	limit := time.After(discoveryLimit)
	last := "nothing is shown"
	for complete := false; ; {
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-limit:
			if complete {
				return f, nil
			}
			return f, fmt.Errorf("after %v the network is not shown right: %s", discoveryLimit, last)
		case l, ok := <-lines:
			if !ok {
				return f, fmt.Errorf("os-ken has ended: %s", bench.LastLines(r.said.String()))
			}
			last = want.differs(l.Shown)
			switch {
			case complete:
				f.answers++
				if last != "" {
					f.wrong, f.why = f.wrong+1, last
				}
			case last == "":
				complete, f.took, f.answers = true, time.Duration(l.At-began), 1
				limit = time.After(watched)
			}
		}
	}
}
