package reservations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// death is a link on the path of a reservation that dies.
type death struct {
	id, what  string
	protected bool
	link      int // of the path, counted from 0
	target    bench.Target
}

var deaths = []death{
	{"protected/first", "with a spare path reserved, the first link of the path", true, 0, spareGap},
	{"protected/second", "with a spare path reserved, the second link of the path", true, 1, spareGap},
	{"rerouted/first", "without a spare path, the first link of the path", false, 0, rerouteGap},
	{"rerouted/second", "without a spare path, the second link of the path", false, 1, rerouteGap},
}

func failureCases() (all []bench.Case) {
	for _, d := range deaths {
		id := "failure/" + d.id
		all = append(all, bench.Case{
			Name: id, Run: d.run, Takes: bench.Takes(bench.Pick(d.smoke(), 16*time.Second, 0), 2*time.Minute),
			Claims: []bench.Claim{bench.NewClaim(id, "UDP of a reservation of 20 Mbit/s that is lost, as time, while greedy UDP fills both paths, the worst of several times: "+d.what, d.target)},
		})
	}
	return all
}

// diamond is two paths from s1 to s4, over s2 and over s3. h1 and h2 are at s1 and send to h3 and h4 at s4.
func diamond() design {
	const line = 50 * unit.Mbit
	return design{nodes: 4, cables: []cable{{1, 2, line, 0}, {2, 4, line, 0}, {1, 3, line, 0}, {3, 4, line, 0}}, hosts: []host{{at: 1}, {at: 1}, {at: 4}, {at: 4}}}
}

// smoke reports whether a smoke run has the case.
func (d death) smoke() bool { return d.protected && d.link == 0 }

func (d death) run(ctx context.Context, r *bench.Run) error {
	if r.Quick && !r.Few && !d.smoke() {
		return errFull
	}
	var worst float64
	var all []float64
	var note string
	for range bench.Pick(r.Quick, 1, 5) {
		ms, what, err := d.once(ctx)
		if err != nil {
			return err
		}
		all = append(all, ms)
		if worst = max(worst, ms); worst == ms {
			note = what
		}
	}
	id, sheet := "failure/"+d.id, r.Sheet(bench.Ours)
	sheet.Set(id, worst)
	sheet.Note(id, "the worst of %d, median %s ms; %s", len(all), bench.Number(bench.Median(all)), note)
	sheet.Keep("ms", all)
	return nil
}

func (d death) once(ctx context.Context) (ms float64, note string, err error) {
	n, err := diamond().up(ctx)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	const held, offered = 20 * unit.Mbit, 19 * unit.Mbit
	p := promise{name: "video", from: "h1", to: "h3", rate: held, class: 1, protocol: "udp", port: 5001}
	if d.protected {
		p.more = []string{"--protected"}
	}
	if err := n.reserve(ctx, p); err != nil {
		return 0, "", err
	}
	before, err := n.reservation(ctx, p.name)
	if err != nil {
		return 0, "", err
	}
	flows := []traffic.Flow{
		{Name: "video", From: "h1", To: "h3", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(offered)},
		{Name: "rest", From: "h2", To: "h4", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(60 * unit.Mbit)},
	}
	const cut = 4 * time.Second
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: 10 * time.Second, Interval: 100 * time.Millisecond})
	if err != nil {
		return 0, "", err
	}
	broken := bench.Sleep(ctx, cut)
	if broken == nil {
		broken = n.cut(ctx, before, d.link)
	}
	result := session.Wait()
	if err := errors.Join(broken, ctx.Err()); err != nil {
		return 0, "", err
	}
	f := result.Flow("video")
	lost := f.Between(cut-time.Second, 10*time.Second).LostDatagrams
	earlier := f.Between(0, cut-time.Second)
	end := f.Between(8*time.Second, 10*time.Second)
	if end.DeliveredRate() < 0.97*float64(offered) {
		return 0, "", fmt.Errorf("six seconds after the failure the flow has %v of %v", unit.Rate(end.DeliveredRate()), unit.Rate(offered))
	}
	now, err := n.reservation(ctx, p.name)
	if err != nil {
		return 0, "", err
	}
	note = fmt.Sprintf("%d datagrams lost, %d of %d before the failure; the reservation is %s, with %d paths", lost, earlier.LostDatagrams, earlier.Datagrams, now.State, len(now.Paths))
	return float64(lost) * float64(f.FrameBytes) * 8 / float64(offered) * 1000, note, nil
}

// reservation returns one that "headgate reserve show" prints.
func (n *network) reservation(ctx context.Context, name string) (r api.Reservation, err error) {
	text, err := n.run(ctx, "reserve", "show", name, "-o", "json")
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// cut takes the port down from which a link of the path in use goes on.
func (n *network) cut(ctx context.Context, r api.Reservation, link int) error {
	for _, p := range r.Paths {
		if p.Spare {
			continue
		}
		if link >= len(p.Links) {
			return fmt.Errorf("the path has %d links", len(p.Links))
		}
		from := p.Links[link].From
		for _, s := range n.Topology.Switches {
			if fmt.Sprintf("%016x", n.Switch(s.Name).DatapathID()) != from.Switch {
				continue
			}
			for _, port := range n.Switch(s.Name).Ports() {
				if int64(port.Number) == int64(from.Port) {
					out, err := n.Switch(s.Name).Command(ctx, "ip", "link", "set", "dev", port.Device, "down").CombinedOutput()
					if err != nil {
						return fmt.Errorf("ip link: %w: %s", err, out)
					}
					return nil
				}
			}
		}
	}
	return errors.New("the reservation has no path")
}
