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

// Limits of feature detection and of the scan for foreign traffic control.
const (
	// foreignScanInterval is the interval of the scan. The kernel sends the agent no event for foreign
	// traffic control, so the agent polls.
	foreignScanInterval = 10 * time.Second
	// maxScannedDevices limits the devices that one scan inspects. mostWords limits the lines that are
	// reported of one device, and mostWord the length of one line.
	maxScannedDevices, maxReportedLines, maxReportedLength = 256, 8, 300
	// doctorTimeout is the timeout of feature detection.
	doctorTimeout = time.Minute
)

// discover detects the features of this machine once, then scans for foreign traffic control
// every foreignEvery until ctx ends.
func (r *remoteAgent) discover(ctx context.Context) {
	features, err := detectFeatures(ctx)
	if err != nil && ctx.Err() == nil {
		slog.Warn("feature detection failed", "error", err)
	}
	r.mu.Lock()
	r.features = features
	r.mu.Unlock()
	r.link.RequestReport()
	for tick := time.NewTicker(foreignScanInterval); ; {
		r.mu.Lock()
		before, divided, states := r.foreign, r.unmanagedShaped, r.states
		r.mu.Unlock()
		now := map[string][]string{}
		shaped := map[string]bool{}
		for _, s := range states {
			shaped[s.Dev] = true
			if len(s.Foreign) > 0 {
				now[s.Dev] = truncateReport(s.Foreign)
			}
		}
		hand := []string{}
		for _, dev := range devicesWithQdiscs() {
			if shaped[dev] {
				continue
			}
			if what := doctor.Foreign(r.app.engines[group.HTB], dev); len(what) > 0 {
				now[dev] = truncateReport(what)
			}
			if state, err := agent.Observe(r.app.engines, dev); err == nil && state != nil {
				hand = append(hand, dev)
			}
		}
		if !reflect.DeepEqual(now, before) || !slices.Equal(hand, divided) {
			r.mu.Lock()
			r.foreign, r.unmanagedShaped = now, hand
			r.mu.Unlock()
			r.link.RequestReport()
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// devicesWithQdiscs returns the devices that have a configured qdisc. A qdisc that the kernel attaches by
// default has no handle.
func devicesWithQdiscs() (devs []string) {
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

// withQdiscs returns the indexes of the devices that have a configured qdisc in the list. Each index
// is returned once: a device with thousands of groups has thousands of qdiscs.
func withQdiscs(all []netlink.Qdisc) (indexes []int) {
	seen := map[int]bool{}
	for _, q := range all {
		if a := q.Attrs(); a.Handle != 0 && !seen[a.LinkIndex] && len(indexes) < maxScannedDevices {
			seen[a.LinkIndex] = true
			indexes = append(indexes, a.LinkIndex)
		}
	}
	return indexes
}

// truncateReport truncates what is reported to the controller about one device.
func truncateReport(words []string) (out []string) {
	for i, w := range words {
		if i == maxReportedLines {
			return append(out, fmt.Sprintf("and %d more", len(words)-i))
		}
		out = append(out, wrap(w, maxReportedLength))
	}
	return out
}

// detectFeatures returns the doctor's checks of this machine. The doctor runs as a process of its own,
// because its trials need a new network namespace.
func detectFeatures(ctx context.Context) (out []*agents.Feature, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, self, "doctor", "-o", "json").Output()
	var report doctor.Report
	if wrong := json.Unmarshal(text, &report); wrong != nil {
		if err == nil { // a non-zero exit code alone is no failure: it means that a check failed
			err = wrong
		}
		return nil, fmt.Errorf("cannot read the report of headgate doctor: %w", err)
	}
	for _, c := range report.Checks {
		if c.About == doctor.Machine {
			out = append(out, &agents.Feature{Name: c.Name, State: string(c.State), Found: wrap(c.Found, maxReportedLength)})
		}
	}
	return out, nil
}
