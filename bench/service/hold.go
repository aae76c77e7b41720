package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Proof from outside that groups are in force: the offered load of a group is three times its ceiling,
// and would arrive without shaping.
const (
	heldPort  = 5003
	heldRate  = unit.Mbit
	heldWants = 3 * heldRate
)

// Chosen by this project.
const (
	// heldOff is the relative error of a second: the seconds of a busy machine differ, and without
	// shaping the rate is off by twice the ceiling.
	heldOff = 0.25
	// heldLead is the time before a fault, until the group is in force.
	heldLead = 3 * time.Second
	// minHeld is the minimum number of observed seconds of a fault.
	minHeld = 3
	// heldEvery is the interval between two observations of the kernel, and heldPrompt is the maximum
	// duration of one, which is the uncertainty of its time.
	heldEvery, heldPrompt = 200 * time.Millisecond, 100 * time.Millisecond
	// heldStall is for how long in two seconds the sender may stall before a low rate does not count.
	heldStall = 100 * time.Millisecond
)

// heldGroup returns the group.
func heldGroup() map[string]any {
	return map[string]any{"name": "held", "guarantee": "500kbit", "ceiling": heldRate.String(), "match": []map[string]any{{"dport": []string{strconv.Itoa(heldPort)}}}}
}

// holding checks that a host's groups are in force, by the kernel's counters: the traffic that leaves
// the device, and whether there are as many classes as at the beginning.
type holding struct {
	host    *enforcing
	session *traffic.Session
	began   time.Time
	classes int // at the beginning

	end    context.CancelFunc
	ended  chan struct{}
	looks  []heldLook
	failed error
}

// heldLook is the state of the kernel at a time.
type heldLook struct {
	at      time.Time
	classes int
	sent    uint64 // bytes that have left the device
}

// hold starts the check.
func (e *enforcing) hold(ctx context.Context) (*holding, error) {
	h := &holding{host: e, ended: make(chan struct{})}
	now, err := e.look()
	if err != nil {
		return nil, err
	}
	h.classes = now.classes
	if h.session, err = traffic.Start(ctx, e.place.lab.Host, []traffic.Flow{
		{Name: "held", From: "host", To: "caller", Protocol: traffic.UDP, DstPort: heldPort, Schedule: traffic.Constant(heldWants)},
	}, traffic.Options{}); err != nil {
		return nil, err
	}
	h.began = time.Now()
	ctx, h.end = context.WithCancel(ctx)
	go h.watch(ctx)
	time.Sleep(heldLead)
	return h, nil
}

// watch observes the kernel until ctx ends.
func (h *holding) watch(ctx context.Context) {
	defer close(h.ended)
	for ctx.Err() == nil {
		before := time.Now()
		now, err := h.host.look()
		if err != nil {
			h.failed = err
			return
		}
		if time.Since(before) < heldPrompt {
			h.looks = append(h.looks, now)
		}
		time.Sleep(heldEvery)
	}
}

// stop stops the check; its results can then be read.
func (h *holding) stop() *traffic.Result {
	h.session.Stop()
	h.end()
	<-h.ended
	return h.session.Wait()
}

// missed returns the times in a period at which the groups were not in force, or an error if that was
// not observed.
func (h *holding) missed(from, to time.Time) (missed []string, err error) {
	result := h.stop()
	if err := errors.Join(h.failed, flowError(result.Flow("held"))); err != nil {
		return nil, err
	}
	var looks []heldLook
	for _, l := range h.looks {
		if l.at.Before(from) || l.at.After(to) {
			continue
		}
		looks = append(looks, l)
		if l.classes < h.classes {
			missed = append(missed, fmt.Sprintf("after %.1f s there were %d of %d classes", l.at.Sub(from).Seconds(), l.classes, h.classes))
		}
	}
	wrong, seen := notHeld(looks, func(from, to time.Time) (stood time.Duration) {
		for _, s := range result.Stalls {
			began := h.began.Add(time.Duration(s.StartSeconds * 1e9))
			ended := began.Add(time.Duration(s.Seconds * 1e9))
			if began.Before(to) && ended.After(from) {
				stood += time.Duration(s.Seconds * 1e9)
			}
		}
		return stood
	})
	if seen < minHeld {
		return nil, fmt.Errorf("only %d seconds of the fault were observed", seen)
	}
	return append(missed, wrong...), nil
}

func flowError(f *traffic.FlowResult) error {
	if f.Error != "" {
		return fmt.Errorf("flow %s: %s", f.Name, f.Error)
	}
	return nil
}

// notHeld returns the seconds with another rate than the group's; seen is their total number. Seconds
// with a lower rate do not count if the sender stalled in or before them.
func notHeld(looks []heldLook, stood func(from, to time.Time) time.Duration) (wrong []string, seen int) {
	for len(looks) > 0 {
		first, next := looks[0], 1
		for next < len(looks) && looks[next].at.Sub(first.at) < time.Second {
			next++
		}
		if looks = looks[next:]; len(looks) == 0 {
			break
		}
		last := looks[0]
		rate := 8 * float64(last.sent-first.sent) / last.at.Sub(first.at).Seconds()
		part := rate / float64(heldRate)
		if part < 1-heldOff && stood(first.at.Add(-time.Second), last.at) > heldStall {
			continue
		}
		seen++
		if part < 1-heldOff || part > 1+heldOff {
			wrong = append(wrong, fmt.Sprintf("in the second to %s the host sent %.1f Mbit/s, in a group of %v", last.at.Format("15:04:05.0"), rate/1e6, heldRate))
		}
	}
	return wrong, seen
}

// setEnforced counts an agent that did not keep the shaping in force, and adds a note of the times.
func setEnforced(sheet *bench.Sheet, id string, missed []string) {
	for _, m := range missed[:min(len(missed), 10)] {
		sheet.Note(id+"/enforced", "%s", m)
	}
	sheet.Set(id+"/enforced", float64(min(len(missed), 1)))
}

// look observes the kernel once.
func (e *enforcing) look() (l heldLook, err error) {
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
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.Kind == "htb" { // classes of fq_codel are its flows
				l.classes++
			}
		}
		l.sent, err = sent(e.dev)
		l.at = time.Now()
		return err
	})
	return l, err
}

// sent returns how many bytes have left a device of the thread's network namespace (proc_pid_net(5)).
func sent(dev string) (uint64, error) {
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, counts, ok := strings.Cut(line, ":")
		if f := strings.Fields(counts); ok && strings.TrimSpace(name) == dev && len(f) > 8 {
			return strconv.ParseUint(f[8], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/net/dev does not have %s", dev)
}
