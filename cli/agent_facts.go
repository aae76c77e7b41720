package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"headgate/agent"
	"headgate/api/agents"
	"headgate/cli/doctor"
	"headgate/group"
)

// Ours, of what is found out beside the loop.
const (
	// foreignEvery: nobody says that others' traffic control is there, so it is looked for.
	foreignEvery = 10 * time.Second
	// mostForeign bounds how many devices are asked closely, and mostWords what is told of one.
	mostForeign, mostWords, mostWord = 256, 8, 300
	doctorPatience                   = time.Minute
)

// discover finds out what this machine can do, once, and then again and again what others' traffic
// control there is, until ctx ends.
func (r *remoteAgent) discover(ctx context.Context) {
	features, err := examined(ctx)
	if err != nil && ctx.Err() == nil {
		slog.Warn("what this machine can do is not known", "error", err)
	}
	r.mu.Lock()
	r.features = features
	r.mu.Unlock()
	r.link.Another()
	for tick := time.NewTicker(foreignEvery); ; {
		r.mu.Lock()
		before, divided, states := r.foreign, r.divided, r.states
		r.mu.Unlock()
		now := map[string][]string{}
		shaped := map[string]bool{}
		for _, s := range states {
			shaped[s.Dev] = true
			if len(s.Foreign) > 0 {
				now[s.Dev] = bounded(s.Foreign)
			}
		}
		hand := []string{}
		for _, dev := range suspects() {
			if shaped[dev] {
				continue
			}
			if what := doctor.Foreign(r.app.engines[group.HTB], dev); len(what) > 0 {
				now[dev] = bounded(what)
			}
			if state, err := agent.Observe(r.app.engines, dev); err == nil && state != nil {
				hand = append(hand, dev)
			}
		}
		if !reflect.DeepEqual(now, before) || !slices.Equal(hand, divided) {
			r.mu.Lock()
			r.foreign, r.divided = now, hand
			r.mu.Unlock()
			r.link.Another()
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// suspects are devices with a queueing discipline that somebody gave them: what the kernel gives
// a device by itself has no handle.
func suspects() (devs []string) {
	all, err := netlink.QdiscList(nil)
	if err != nil {
		return nil
	}
	for _, index := range withQdiscs(all) {
		if l, err := netlink.LinkByIndex(index); err == nil {
			devs = append(devs, l.Attrs().Name)
		}
	}
	return devs
}

// withQdiscs are the indexes of devices that somebody gave one of these, each once, because thousands of
// groups have thousands.
func withQdiscs(all []netlink.Qdisc) (indexes []int) {
	seen := map[int]bool{}
	for _, q := range all {
		if a := q.Attrs(); a.Handle != 0 && !seen[a.LinkIndex] && len(indexes) < mostForeign {
			seen[a.LinkIndex] = true
			indexes = append(indexes, a.LinkIndex)
		}
	}
	return indexes
}

// bounded is no more than a controller should be told of one device.
func bounded(words []string) (out []string) {
	for i, w := range words {
		if i == mostWords {
			return append(out, fmt.Sprintf("and %d more", len(words)-i))
		}
		out = append(out, wrap(w, mostWord))
	}
	return out
}

// examined is what the doctor finds of this machine. It is a process of its own, because it tries
// things in a network namespace that it makes.
func examined(ctx context.Context) (out []*agents.Feature, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	text, err := exec.CommandContext(ctx, self, "doctor", "-o", "json").Output()
	var report doctor.Report
	if wrong := json.Unmarshal(text, &report); wrong != nil {
		if err == nil { // else it says what is missing by its exit code as well
			err = wrong
		}
		return nil, fmt.Errorf("the doctor does not say: %w", err)
	}
	for _, c := range report.Checks {
		if c.About == doctor.Machine {
			out = append(out, &agents.Feature{Name: c.Name, State: string(c.State), Found: wrap(c.Found, mostWord)})
		}
	}
	return out, nil
}
