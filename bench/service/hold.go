package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"headgate/bench"
	"headgate/internal/nl"
	"headgate/lab/traffic"
	"headgate/unit"
)

// What shows from outside that groups are in force: three times as much is sent in a group as it
// may have, and arrives if nobody holds it back.
const (
	heldPort  = 5003
	heldRate  = 5 * unit.Mbit
	heldWants = 3 * heldRate
)

// Ours.
const (
	// heldOff is by what part of the rate a second may be off: a busy machine's are not all alike,
	// and without enforcement it is off by twice the rate.
	heldOff = 0.25
	// heldLead is before a fault: what is measured is in force then.
	heldLead = 3 * time.Second
	// heldLeast are the seconds of a fault that have to be seen.
	heldLeast = 3
	// classesEvery is the time between two looks at the kernel's classes.
	classesEvery = 100 * time.Millisecond
)

// heldGroup is the group.
func heldGroup() map[string]any {
	return map[string]any{"name": "held", "guarantee": "1Mbit", "ceiling": heldRate.String(), "match": []map[string]any{{"dport": []string{strconv.Itoa(heldPort)}}}}
}

// holding watches that a host's groups are in force: what arrives of a flow, second by second, and
// whether the kernel has as many classes as at the beginning.
type holding struct {
	host    *enforcing
	session *traffic.Session
	began   time.Time
	classes int // at the beginning

	end    context.CancelFunc
	ended  chan struct{}
	looked []classLook
	failed error
}

// classLook is how many classes there were at a time.
type classLook struct {
	at time.Time
	n  int
}

// hold begins to watch.
func (e *enforcing) hold(ctx context.Context) (*holding, error) {
	h := &holding{host: e, ended: make(chan struct{})}
	var err error
	if h.classes, err = e.classes(); err != nil {
		return nil, err
	}
	if h.session, err = traffic.Start(ctx, e.place.lab.Host, []traffic.Flow{
		{Name: "held", From: "host", To: "caller", Protocol: traffic.UDP, DstPort: heldPort, Schedule: traffic.Constant(heldWants)},
	}, traffic.Options{}); err != nil {
		return nil, err
	}
	h.began = time.Now()
	ctx, h.end = context.WithCancel(ctx)
	go h.look(ctx)
	time.Sleep(heldLead)
	return h, nil
}

// look looks at the classes until ctx ends.
func (h *holding) look(ctx context.Context) {
	defer close(h.ended)
	for ctx.Err() == nil {
		n, err := h.host.classes()
		if err != nil {
			h.failed = err
			return
		}
		h.looked = append(h.looked, classLook{time.Now(), n})
		time.Sleep(classesEvery)
	}
}

// stop ends the watch; what was seen can be asked for then.
func (h *holding) stop() *traffic.FlowResult {
	h.session.Stop()
	h.end()
	<-h.ended
	return h.session.Wait().Flow("held")
}

// missed are the times between two at which the groups were not in force. An error is that this was
// not seen.
func (h *holding) missed(from, to time.Time) (missed []string, err error) {
	flow := h.stop()
	if err := errors.Join(h.failed, flowError(flow)); err != nil {
		return nil, err
	}
	missed, seen := notHeld(flow.Intervals, from.Sub(h.began), to.Sub(h.began))
	if seen < heldLeast {
		return nil, fmt.Errorf("only %d whole seconds of the fault were seen", seen)
	}
	for _, l := range h.looked {
		if l.at.After(from) && l.at.Before(to) && l.n < h.classes {
			missed = append(missed, fmt.Sprintf("after %.1f s there were %d of %d classes", l.at.Sub(from).Seconds(), l.n, h.classes))
		}
	}
	return missed, nil
}

func flowError(f *traffic.FlowResult) error {
	if f.Error != "" {
		return fmt.Errorf("flow %s: %s", f.Name, f.Error)
	}
	return nil
}

// setEnforced counts an agent that did not go on enforcing, and says when.
func setEnforced(sheet *bench.Sheet, id string, missed []string) {
	for _, m := range missed[:min(len(missed), 10)] {
		sheet.Note(id+"/enforced", "%s", m)
	}
	sheet.Set(id+"/enforced", float64(min(len(missed), 1)))
}

// notHeld are the seconds, of those wholly between two times, in which another rate arrived than the
// group may have; seen is how many there are.
func notHeld(seconds []traffic.Interval, from, to time.Duration) (wrong []string, seen int) {
	for _, s := range seconds {
		if s.StartSeconds < from.Seconds() || s.StartSeconds+s.Seconds > to.Seconds() {
			continue
		}
		seen++
		if part := s.DeliveredRate() / float64(heldRate); part < 1-heldOff || part > 1+heldOff {
			wrong = append(wrong, fmt.Sprintf("after %.1f s a group of %v had %.1f Mbit/s", s.StartSeconds-from.Seconds(), heldRate, s.DeliveredRate()/1e6))
		}
	}
	return wrong, seen
}

// classes are how many of HTB the host's device has.
func (e *enforcing) classes() (n int, err error) {
	err = e.node.Do(func() error {
		dev, err := net.InterfaceByName(e.dev)
		if err != nil {
			return err
		}
		c, err := nl.Open()
		if err != nil {
			return err
		}
		defer c.Close()
		all, err := c.Objects("the classes", unix.RTM_GETTCLASS, nl.TC{Ifindex: dev.Index})
		for _, o := range all {
			if o.Kind == "htb" { // those of fq_codel are its flows
				n++
			}
		}
		return err
	})
	return n, err
}
