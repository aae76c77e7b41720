package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Targets.
var (
	delivered = bench.Target{Op: "<=", Value: 0.1, Unit: "%"}
	unmet     = bench.Target{Op: "<=", Value: 0, Unit: "s"}
)

// The setup: both directions of a link, with these groups. The first has a demand above its bandwidth,
// in datagrams, the second unlimited demand, with TCP.
const (
	proofLimit = 100 * unit.Mbit
	webPort    = 5001
	dbPort     = 5002
	webWants   = 70 * unit.Mbit
	webQuiet   = 20 * unit.Mbit
)

var proofGroups = []struct {
	name      string
	port      uint16
	guarantee unit.Rate
}{{"web", webPort, 50 * unit.Mbit}, {"db", dbPort, 30 * unit.Mbit}}

// Chosen by this project.
const (
	// proofLead is the time before the first fault and quietAfter that after the last: then TCP has
	// its rate, and a demand below the guarantee cannot be unmet.
	proofLead, quietAfter = 5 * time.Second, 4 * time.Second
	// betweenFaults is the time for the queues to empty.
	betweenFaults = 2 * time.Second
	// faultyPart: in a fault a group gets its guarantee divided by this.
	faultyPart = 4
)

// slowed is a fault: another program sets the rate of a group's class to a quarter of its guarantee,
// for whole seconds of the clock.
type slowed struct {
	direction string
	group     int
	length    time.Duration
}

func proofCases(d *bench.Draw) []bench.Case {
	drawn := d.For("proof")
	var faults []slowed
	for _, direction := range []string{"out", "in"} {
		for g := range proofGroups {
			faults = append(faults, slowed{direction, g, time.Duration(drawn.Int(2, 7)) * time.Second})
		}
	}
	return []bench.Case{{
		Name: "proof",
		Claims: []bench.Claim{
			bench.NewClaim("proof/delivered", "largest deviation of four groups from a capture", delivered),
			bench.NewClaim("proof/unmet", "seconds recorded as unmet without a fault, and seconds of faults not recorded", unmet),
			bench.NewClaim("proof/faulty", "seconds of faults", bench.Target{Op: bench.Measured, Unit: "s"}),
		},
		Takes: func(quick bool) time.Duration {
			if quick {
				return 30 * time.Second
			}
			return 60 * time.Second
		},
		Alongside: smoke("last"),
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			p, err := setting{exact: true}.build(ctx, 1)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			e, err := p.enforce(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			if r.Quick {
				faults = []slowed{{"out", 0, 2 * time.Second}, {"in", 1, 2 * time.Second}}
			}
			return e.prove(ctx, r.Sheet(bench.Ours), faults)
		},
	}}
}

func (e *enforcing) prove(ctx context.Context, sheet *bench.Sheet, faults []slowed) error {
	a := e.place.ask(e.place.controllers[0])
	defer a.client.CloseIdleConnections()
	began := time.Now()
	ends, err := e.divide(ctx, a)
	if err != nil {
		return err
	}
	var captures [2]*capture
	for i, end := range ends {
		if captures[i], err = capturing(ctx, e.node, end.name); err != nil {
			return err
		}
	}
	telling := a.tellUnmet(ctx, began)
	made, err := e.disturb(ctx, ends, faults)
	unmet, failed := telling.end()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	seen := map[string]map[uint16]uint64{}
	for i, end := range ends {
		if seen[end.direction], err = captures[i].end(); err != nil {
			return err
		}
	}
	told, err := a.usage(ctx, began)
	if err != nil {
		return err
	}
	worst := 0.0
	for direction, bytes := range seen {
		for _, of := range proofGroups {
			row, ok := told[direction+"/"+of.name]
			if !ok {
				return fmt.Errorf("no usage of %s %s", direction, of.name)
			}
			off := 100 * math.Abs(float64(orZero(row.DeliveredBytes))/float64(bytes[of.port])-1)
			sheet.Note("proof/delivered", "%s %s: %d bytes recorded, %d captured", direction, of.name, orZero(row.DeliveredBytes), bytes[of.port])
			worst = math.Max(worst, off)
		}
	}
	wrong, faulty := 0, 0
	for name := range told { // also groups without a fault
		differs := unmet[name].differs(made[name])
		sheet.Note("proof/unmet", "%s: %d s recorded, %d s of faults, different seconds: %v", name, len(unmet[name]), len(made[name]), differs)
		wrong += len(differs)
		faulty += len(made[name])
	}
	sheet.Set("proof/delivered", worst)
	sheet.Set("proof/unmet", float64(wrong))
	sheet.Set("proof/faulty", float64(faulty))
	return nil
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// shapedEnd is a device with the groups of one direction: for incoming traffic, the IFB.
type shapedEnd struct {
	direction, name string
	index           int
}

// divide configures the host's link in both directions, and waits until that is in force.
func (e *enforcing) divide(ctx context.Context, a *asking) (ends [2]shapedEnd, err error) {
	groups := []map[string]any{{"name": "rest", "guarantee": "10%", "default": true}}
	for _, g := range proofGroups {
		groups = append(groups, map[string]any{"name": g.name, "guarantee": g.guarantee.String(), "match": []map[string]any{{"dport": []string{strconv.Itoa(int(g.port))}}}})
	}
	direction := map[string]any{"limit": proofLimit.String(), "groups": groups}
	if _, err := a.must(ctx, http.MethodPut, e.path, map[string]any{"out": direction, "in": direction}); err != nil {
		return ends, err
	}
	for until := time.Now().Add(startPatience); ; time.Sleep(100 * time.Millisecond) {
		err = e.node.Do(func() (err error) { ends, err = endsOf(e.dev); return err })
		if err == nil {
			// All later readings are relative to the agent's first.
			time.Sleep(2 * time.Second)
			return ends, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return ends, fmt.Errorf("%w: %s", err, e.said)
		}
	}
}

// endsOf returns those of a device of the thread's namespace, if their groups exist.
func endsOf(dev string) (ends [2]shapedEnd, err error) {
	link, err := net.InterfaceByName(dev)
	if err != nil {
		return ends, err
	}
	ifb, err := net.InterfaceByName(group.IFBPrefix + strconv.Itoa(link.Index))
	if err != nil {
		return ends, err
	}
	ends = [2]shapedEnd{{"out", dev, link.Index}, {"in", ifb.Name, ifb.Index}}
	for _, end := range ends {
		for _, g := range proofGroups {
			if _, err := end.class(g.guarantee); err != nil {
				return ends, err
			}
		}
	}
	return ends, nil
}

// class returns the class of the group with a guarantee, within 2 %: an engine gives its classes a
// little less than the total of the guarantees.
func (s shapedEnd) class(guarantee unit.Rate) (nl.Object, error) {
	c, err := nl.Open()
	if err != nil {
		return nl.Object{}, err
	}
	defer c.Close()
	all, err := c.Objects("the classes", unix.RTM_GETTCLASS, nl.TC{Ifindex: s.index})
	if err != nil {
		return nl.Object{}, err
	}
	for _, o := range all {
		if h, err := o.HTBClass(); err == nil && math.Abs(8*float64(h.Rate)/float64(guarantee)-1) < 0.02 {
			return o, nil
		}
	}
	return nl.Object{}, fmt.Errorf("%s has no class of %v", s.name, guarantee)
}

// disturb sends traffic, and causes the faults one after the other; it returns the seconds in which
// each group had one, as "out/web".
func (e *enforcing) disturb(ctx context.Context, ends [2]shapedEnd, faults []slowed) (map[string]seconds, error) {
	last := proofLead
	for _, f := range faults {
		last += f.length + betweenFaults
	}
	// Up to a second passes until the next whole second before the first.
	last += time.Second
	var flows []traffic.Flow
	for i, way := range [][2]string{{"host", "caller"}, {"caller", "host"}} {
		flows = append(flows,
			traffic.Flow{Name: "web " + ends[i].direction, From: way[0], To: way[1], Protocol: traffic.UDP, DstPort: webPort,
				Schedule: []traffic.Step{{Rate: webWants}, {At: last, Rate: webQuiet}}},
			traffic.Flow{Name: "db " + ends[i].direction, From: way[0], To: way[1], Protocol: traffic.TCP, DstPort: dbPort,
				Schedule: traffic.Constant(traffic.Unlimited)})
	}
	session, err := traffic.Start(ctx, e.place.lab.Host, flows, traffic.Options{Duration: last + quietAfter})
	if err != nil {
		return nil, err
	}
	defer session.Stop()
	time.Sleep(proofLead)
	made := map[string]seconds{}
	for _, f := range faults {
		end := ends[0]
		if f.direction == "in" {
			end = ends[1]
		}
		nextSecond(betweenFaults / 2)
		began := time.Now().Round(time.Second)
		if err := e.node.Do(func() error { return end.slow(proofGroups[f.group].guarantee, f.length) }); err != nil {
			return nil, err
		}
		name := f.direction + "/" + proofGroups[f.group].name
		if made[name] == nil {
			made[name] = seconds{}
		}
		for n := range int64(f.length / time.Second) {
			made[name][began.Unix()+n] = true
		}
	}
	session.Wait()
	time.Sleep(2 * time.Second) // for the reading after the last packet
	return made, nil
}

// nextSecond waits until the first whole second of the clock after at least minWait.
func nextSecond(minWait time.Duration) {
	time.Sleep(time.Until(time.Now().Add(minWait).Truncate(time.Second).Add(time.Second)))
}

// slow gives a class only a part of its rate for a while.
func (s shapedEnd) slow(guarantee unit.Rate, length time.Duration) error {
	until := time.Now().Add(length).Round(time.Second)
	class, err := s.class(guarantee)
	if err != nil {
		return err
	}
	whole, err := class.HTBClass()
	if err != nil {
		return err
	}
	part := whole
	part.Rate /= faultyPart
	part.Ceil = part.Rate
	if err := s.set(class, part); err != nil {
		return err
	}
	time.Sleep(time.Until(until))
	if _, err := s.class(guarantee / faultyPart); err != nil {
		return fmt.Errorf("the fault was repaired before its end: %w", err)
	}
	return s.set(class, whole)
}

func (s shapedEnd) set(class nl.Object, to nl.HTBClass) error {
	c, err := nl.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	var b nl.Batch
	b.SetHTBClass(s.index, class.Handle, class.Parent, to)
	return c.Execute(&b)
}

// usage returns the service's usage of the host's groups since a time, by direction and name.
func (a *asking) usage(ctx context.Context, since time.Time) (map[string]api.Usage, error) {
	q := url.Values{"host": {"host"}, "since": {since.UTC().Format(time.RFC3339)}}
	text, err := a.must(ctx, http.MethodGet, "/v1/usage?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var list api.UsageList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if list.Missing != nil && len(*list.Missing) > 0 {
		return nil, errors.New("the agent did not answer")
	}
	all := map[string]api.Usage{}
	for _, row := range list.Items {
		all[row.Direction+"/"+row.Group] = row
	}
	return all, nil
}
