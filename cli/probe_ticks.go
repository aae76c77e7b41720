package cli

import (
	"errors"
	"io"
	"time"

	"headgate/probe"
	"headgate/probe/available"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/unit"
)

// tickLogCommand is the command name in the log of a measurement with --ticks.
const tickLogCommand = "packettick"

// ticksBudget is the default budget: trains of 500 packets at up to 1 Gbit/s need this much.
const ticksBudget unit.Bytes = 50_000_000

// probeTicks measures the available bandwidth from one server to this host, with the packets of a
// second server as the clock: PacketTick of the estimation seed.
func (a *app) probeTicks(target string, f probeFlags, auth session.Auth) error {
	ctx, stop := interrupted()
	defer stop()
	say := a.progress(*f.output)
	defer say.clear()
	senders, err := dialAll(ctx, "headgate probe available", []string{target, f.ticks}, session.Options{Network: f.network(), Auth: auth}, say)
	if err != nil {
		return err
	}
	defer senders.close()
	log, closeLog, err := probeLog(f.log, tickLogCommand, target, senders.clients[0])
	if err != nil {
		return err
	}
	m := available.PacketTick{Highest: float64(f.capacity), Budget: unit.Bytes(f.bytes)}
	begun := time.Now()
	var samples []probe.JointSample
	var failure error
	for time.Since(begun) < f.time {
		j, ok := m.Next(samples)
		if !ok {
			break
		}
		say.say("%s: %s, %s", target, j.Purpose, j.Bytes())
		s, err := session.SendJoint(ctx, senders.clients, senders.roundTrips, j)
		if err != nil {
			failure = err
			break
		}
		s.Reordered = senders.reordered
		samples = append(samples, s)
		if log != nil {
			failure = errors.Join(failure, log.AddJoint(senders.hosts, &s))
		}
	}
	say.clear()
	out := tickReport(target, senders.roundTrips[0], m, samples)
	out.Peer = senders.clients[0].Peer.String()
	out.Directions[probe.In].Seconds = time.Since(begun).Seconds()
	if failure != nil {
		out.Failed = failure.Error()
	}
	err = a.print(*f.output, out, func(w io.Writer) error { return reportTable(w, &out) })
	return errors.Join(failure, err, closeLog())
}

// tickReport returns the report from samples.
func tickReport(host string, rtt time.Duration, m available.PacketTick, samples []probe.JointSample) path.Report {
	r := m.Estimate(samples)
	answer := &path.Answer{Available: &r}
	sent, came := 0, 0
	for i := range samples {
		answer.Bytes += samples[i].Bytes()
		came += len(samples[i].Arrived)
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
		answer.Lost = max(0, 1-float64(came)/float64(sent))
		answer.LayerThree = float64(answer.Packet) / float64(answer.Packet+probe.Overhead)
	}
	return path.Report{Host: host, RTT: rtt, Directions: map[probe.Direction]*path.Answer{probe.In: answer}}
}
