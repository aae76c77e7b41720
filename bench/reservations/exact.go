package reservations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/share/sharetest"
	"headgate.dev/headgate/unit"
)

func exactCases(d *bench.Draw) []bench.Case {
	over := "seconds in which a flow of UDP passes more than 105 % of its limit, "
	takes := bench.Takes(0, 130*time.Second)
	return []bench.Case{
		{
			Name: "exact/static", Takes: takes, Run: func(ctx context.Context, r *bench.Run) error { return exact(ctx, r, "static", d.Seed()) },
			Claims: []bench.Claim{bench.NewClaim("exact/static", over+"with limits that do not change", over105).WithPaper(35)},
		},
		{
			Name: "exact/adaptive", Takes: takes, Run: func(ctx context.Context, r *bench.Run) error { return exact(ctx, r, "adaptive", d.Seed()) },
			Claims: []bench.Claim{
				bench.NewClaim("exact/adaptive", over+"with limits that follow random demand", over105).WithPaper(5),
			},
		},
		lostCase(traffic.UDP, false), lostCase(traffic.TCP, false), lostCase(traffic.UDP, true),
	}
}

// lostCase is QoS flows inside their limits, beside a rest of a protocol, in the paper's tree or with a cable more that makes it a ring: switches then have
// backups, and other rules for what they send on.
func lostCase(rest traffic.Protocol, ring bool) bench.Case {
	id, where, d := "exact/lost/"+string(rest), "", thesis(sharetest.LinkRate*lostFactor)
	if ring {
		id, where = "exact/lost/ring", ", in a ring"
		d.cables = append(d.cables, cable{3, 6, unit.Mbit, 10}) // too slow for a reservation
	}
	smoke := rest == traffic.UDP && !ring
	return bench.Case{
		Name: id, Takes: bench.Takes(bench.Pick(smoke, 22*time.Second, 0), 130*time.Second),
		Run: func(ctx context.Context, r *bench.Run) error {
			if r.Quick && !r.Few && !smoke {
				return errFull
			}
			return inside(ctx, r, id, rest, d)
		},
		Claims: []bench.Claim{
			bench.NewClaim(id, fmt.Sprintf("datagrams of QoS flows that are lost inside their limits, while another QoS flow and a rest of %s overload the link%s", strings.ToUpper(string(rest)), where), lostPart).WithPaper(5),
		},
	}
}

// exact compares what arrives in each second with the highest limit in it, and in a second before and after: a limit is in force at the switch when
// a message has arrived there, and is read up to 100 ms later.
func exact(ctx context.Context, r *bench.Run, scheme string, seed uint64) (err error) {
	if r.Quick && !r.Few {
		return errFull
	}
	const factor = 10 // 50 Mbit/s
	table := sharetest.Scenarios[3].At(factor)
	d := thesis(sharetest.LinkRate * factor)
	d.scheme = scheme
	n, err := d.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var all []promise
	var flows []traffic.Flow
	rates := table.Random(seed)
	for i, f := range table.Flows {
		one := traffic.Flow{Name: strings.ToLower(f.Name), From: hostName(i + 1), To: hostName(i + 6), Protocol: traffic.UDP, DstPort: uint16(5001 + i)}
		if f.Class == share.BestEffort {
			one.Schedule = traffic.Constant(3 * sharetest.LinkRate * factor / 5)
		} else {
			all = append(all, promise{name: one.Name, from: one.From, to: one.To, rate: f.Reserved, class: f.Class, protocol: "udp", port: 5001 + i})
			for k, at := range rates {
				one.Schedule = append(one.Schedule, traffic.Step{At: time.Duration(k) * 5 * time.Second, Rate: at[i]})
			}
		}
		flows = append(flows, one)
	}
	if err := n.reserve(ctx, all...); err != nil {
		return err
	}
	result, limits, start, err := n.sendWatched(ctx, flows, bench.Pick(r.Quick, 15*time.Second, 110*time.Second))
	if err != nil {
		return err
	}
	seconds, beyond, worst := 0, 0, 0.0
	for _, p := range all {
		for _, i := range result.Flow(p.name).Intervals {
			from := start.Add(time.Duration(i.StartSeconds * 1e9))
			limit, ok := highest(limits[p.name], from.Add(-time.Second), from.Add(2*time.Second))
			if !ok {
				return fmt.Errorf("no limit of %s was read", p.name)
			}
			seconds++
			part := i.DeliveredRate() / limit
			worst = max(worst, part)
			if part > 1.05 {
				beyond++
			}
		}
	}
	id, sheet := "exact/"+scheme, r.Sheet(bench.Ours)
	sheet.Set(id, 100*float64(beyond)/float64(seconds))
	sheet.Note(id, "%d of %d seconds of four flows; the most is %.1f %% of a limit", beyond, seconds, 100*worst)
	return nil
}

// restFlows is how many flows of TCP are what is not reserved, and lostFactor how many times the paper's rates these cases have: 50 Mbit/s.
const restFlows, lostFactor = 4, 10

// inside lets three flows send somewhat less than is reserved, while a fourth reservation and the rest overload the link.
func inside(ctx context.Context, r *bench.Run, id string, rest traffic.Protocol, d design) (err error) {
	table := sharetest.Scenarios[3].At(lostFactor)
	n, err := d.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var all []promise
	var flows []traffic.Flow
	for i, f := range table.Flows {
		one := traffic.Flow{Name: strings.ToLower(f.Name), From: hostName(i + 1), To: hostName(i + 6), Protocol: traffic.UDP, DstPort: uint16(5001 + i), Schedule: traffic.Constant(f.Reserved * 97 / 100)}
		switch f.Class {
		case share.BestEffort:
			one.Schedule, one.Protocol = traffic.Constant(3*sharetest.LinkRate*lostFactor/5), rest
			if rest == traffic.TCP {
				one.Schedule = traffic.Constant(3 * sharetest.LinkRate * lostFactor / 5 / restFlows)
				for k := range restFlows - 1 {
					more := one
					more.Name, more.DstPort = fmt.Sprint(one.Name, k+2), one.DstPort+uint16(k+1)
					flows = append(flows, more)
				}
			}
		case 4: // offers more than it has
			one.Schedule = traffic.Constant(2 * f.Reserved)
			fallthrough
		default:
			all = append(all, promise{name: one.Name, from: one.From, to: one.To, rate: f.Reserved, class: f.Class, protocol: "udp", port: 5001 + i})
		}
		flows = append(flows, one)
	}
	if err := n.reserve(ctx, all...); err != nil {
		return err
	}
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: bench.Pick(r.Quick, 15*time.Second, 110*time.Second), Interval: time.Second})
	if err != nil {
		return err
	}
	result := session.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var sent, lost uint64
	for _, p := range all {
		if p.class < 4 {
			t := result.Flow(p.name).Total
			sent, lost = sent+t.Datagrams, lost+t.LostDatagrams
		}
	}
	if sent == 0 {
		return errors.New("nothing was sent")
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id, 100*float64(lost)/float64(sent))
	over := result.Flow("qos4").Total
	var got float64
	for _, f := range flows {
		if strings.HasPrefix(f.Name, "be") {
			got += result.Flow(f.Name).Total.DeliveredRate()
		}
	}
	sheet.Note(id, "%d of %d datagrams of three flows at 97 %% of their reservations, from the first second on; a fourth offers twice its reservation and loses %.0f %%, and the rest has %v", lost, sent, 100*float64(over.LostDatagrams)/float64(max(1, over.Datagrams)), unit.Rate(got))
	return nil
}
