package report

import (
	"fmt"
	"time"

	"headgate.dev/headgate/lab"
)

// Frame is the rates of a running lab in one interval.
type Frame struct {
	Lab string
	// Seconds is the time since the start of the run. Length is the duration of the run, 0
	// for a run until all transfers end.
	Seconds, Length float64
	Flows           []Flow
	Requests        []Requests
	Transfers       []Transfer
	Links           []Link
	Events          []string // all events so far, the latest last
}

// Flow is one flow. Rates are layer-2 bits per second.
type Flow struct {
	Name, Direction    string // Direction is "client > server"
	Offered, Delivered float64
	Lost               uint64 // lost datagrams, or retransmitted segments
	// SRTT, window (in segments) and jitter are 0 if the flow has none.
	SRTTus, Cwnd uint32
	Jitter       time.Duration
}

// Requests is the requests of a flow in the interval, and the numbers under way and
// queued at the end of the interval.
type Requests struct {
	Name              string
	Done              float64 // per second
	Refused, Failed   uint64
	UnderWay, Backlog uint64
	P50, P99          time.Duration // latency
}

// Transfer is the progress of a flow's transfers.
type Transfer struct {
	Name      string
	Completed uint64 // of Times
	Times     int
	Failed    uint64
	Last      time.Duration // duration of the last transfer
	Arrived   float64       // received share of the transfer under way
}

// Link is one direction of a link.
type Link struct {
	Name, Way string
	Rate      float64
	Dropped   uint64
}

// Length returns the duration of a run in seconds, 0 for a run until all transfers end.
func Length(t *lab.Topology) float64 {
	if t.UntilDone() {
		return 0
	}
	return t.RunTime().Seconds()
}

// NewFrame returns the frame of a sample.
func NewFrame(t *lab.Topology, s lab.Sample) Frame {
	f := Frame{Lab: t.Name, Seconds: s.Seconds, Length: Length(t)}
	for i, flow := range s.Flows {
		f.Flows = append(f.Flows, Flow{
			Name: flow.Name, Direction: t.Flows[i].From + " > " + t.Flows[i].To,
			Offered: flow.OfferedRate(), Delivered: flow.DeliveredRate(),
			Lost: flow.Retransmits + flow.LostDatagrams, SRTTus: flow.SRTTus,
			Cwnd: flow.CwndSegments, Jitter: microseconds(flow.JitterUs),
		})
		if q := flow.Requests; q != nil {
			f.Requests = append(f.Requests, Requests{
				Name: flow.Name, Done: float64(q.Done) / flow.Seconds, Refused: q.Refused, Failed: q.Failed,
				UnderWay: q.UnderWay, Backlog: q.Backlog, P50: microseconds(q.Latency.P50Us), P99: microseconds(q.Latency.P99Us),
			})
		}
		if p, spec := flow.Transfer, t.Flows[i].Transfer; p != nil {
			f.Transfers = append(f.Transfers, Transfer{
				Name: flow.Name, Completed: p.Completed, Times: max(spec.Times, 1), Failed: p.Failed,
				Last: microseconds(p.LastSeconds * 1e6), Arrived: float64(p.ArrivedBytes) / float64(spec.Size),
			})
		}
	}
	for i, l := range s.Links {
		a, b := t.Links[i].Ends[0], t.Links[i].Ends[1]
		f.Links = append(f.Links,
			Link{Name: l.Name, Way: a + " > " + b, Rate: l.Forward.Rate(), Dropped: l.Forward.Dropped},
			Link{Name: l.Name, Way: b + " > " + a, Rate: l.Back.Rate(), Dropped: l.Back.Dropped})
	}
	for _, e := range s.Events {
		f.Events = append(f.Events, fmt.Sprintf("%.1f s, %s", e.HappenedSeconds, e.What))
	}
	return f
}
