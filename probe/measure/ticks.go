package measure

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

// ticksCommand is the command name in the log of a measurement with ticks.
const ticksCommand = "packettick"

// TicksBudget is the default budget: trains of 500 packets at up to 1 Gbit/s need this much.
const TicksBudget unit.Bytes = 50_000_000

// Ticks measures the available bandwidth from a host to this one for at most limit, with the packets of a
// second host as the clock: PacketTick of the estimation seed. The report is nil if the measurement did
// not start. With a later error, the report has the results until then.
func Ticks(ctx context.Context, target, clock Host, m available.PacketTick, limit time.Duration, o Options) (*path.Report, error) {
	senders, err := dialAll(ctx, []Host{target, clock}, o)
	if err != nil {
		return nil, err
	}
	defer senders.close()
	log, closeLog, err := o.CreateLog(ticksCommand, target.Name, senders.clients[0])
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	var samples []probe.JointSample
	var failure error
	for time.Since(begun) < limit {
		j, ok := m.Next(samples)
		if !ok {
			break
		}
		o.progress("%s: %s, %s", target.Name, j.Purpose, j.Bytes())
		s, err := session.SendJoint(ctx, senders.clients, senders.roundTrips, j)
		if err != nil {
			failure = err
			break
		}
		s.Reordered = senders.reordered
		samples = append(samples, s)
		if log != nil {
			failure = errors.Join(failure, log.AddJoint(senders.names(), &s))
		}
	}
	out := ticksReport(target.Name, senders.roundTrips[0], m, samples)
	out.Peer = senders.clients[0].Peer.String()
	out.Directions[probe.In].Seconds = time.Since(begun).Seconds()
	if failure != nil {
		out.Failed = failure.Error()
	}
	return out, errors.Join(failure, closeLog())
}

// ticksReport returns the report from samples.
func ticksReport(host string, rtt time.Duration, m available.PacketTick, samples []probe.JointSample) *path.Report {
	r := m.Estimate(samples)
	answer := &path.Answer{Available: &r}
	sent, arrived := 0, 0
	for i := range samples {
		answer.Bytes += samples[i].Bytes()
		arrived += len(samples[i].Arrived)
		for _, t := range samples[i].Trains {
			sent += t.Count()
			for _, p := range t.Parts {
				answer.Packet = max(answer.Packet, p.Size)
			}
		}
		if samples[i].Reordered && len(r.Notes) == 0 {
			r.Notes = append(r.Notes, "the servers' packets arrive through different receive queues: their order may differ from that on the path")
		}
	}
	if sent > 0 {
		answer.Lost = max(0, 1-float64(arrived)/float64(sent))
		answer.LayerThree = float64(answer.Packet) / float64(answer.Packet+probe.Overhead)
	}
	return &path.Report{Host: host, RTT: rtt, Directions: map[probe.Direction]*path.Answer{probe.In: answer}}
}
