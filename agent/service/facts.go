package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/agent/intent"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Limits of feature detection and of the scan for foreign traffic control.
const (
	// foreignScanInterval is the interval of the scan. The kernel sends the agent no event for foreign
	// traffic control, so the agent polls.
	foreignScanInterval = 10 * time.Second
	// maxScannedDevices limits the devices that one scan inspects. maxReportedLines limits the lines that
	// are reported of one device, and maxReportedLength the length of one line.
	maxScannedDevices, maxReportedLines, maxReportedLength = 256, 8, 300
	// doctorTimeout is the timeout of feature detection.
	doctorTimeout = time.Minute
)

// host describes the host and its devices to the controllers.
type host struct {
	kernel  agent.Kernel
	engines map[group.Engine]shaper.Shaper
	speed   func(dev string) (unit.Rate, bool)
	command func(ctx context.Context, args ...string) (*exec.Cmd, error)
	// origin returns the origin of the document that configures a device.
	origin func(names group.AltNames, dev string) intent.Origin
	// states returns the newest state of the devices that the agent shapes.
	states func() []shaper.State
	// changed is called after features, foreign or unmanagedShaped changed.
	changed func()

	mu              sync.Mutex
	features        []*agents.Feature   // of this machine
	foreign         map[string][]string // foreign traffic control, by device
	manuallyChanged []string            // devices with a manual change that differs from the desired state
	unmanagedShaped []string            // devices with groups and without a desired state
	links           map[int]link        // as of the last scan
}

// setManuallyChanged sets the devices with a manual change that differs from the desired state.
func (h *host) setManuallyChanged(devices []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.manuallyChanged = devices
}

// facts describes the host and its devices.
func (h *host) facts() *agents.Facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := &agents.Facts{Features: h.features}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		out.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	devices, err := h.kernel.Devices()
	if err != nil {
		slog.Warn("cannot list network devices", "error", err)
	}
	names, links := agent.Names(devices), readLinks()
	for _, dev := range devices {
		d := &agents.Device{Name: dev.Name, Up: dev.Up, Mtu: int32(dev.MTU), Owner: "none", Foreign: h.foreign[dev.Name], Altnames: dev.AltNames}
		origin := h.origin(names, dev.Name)
		switch {
		case slices.Contains(h.manuallyChanged, dev.Name), origin == "" && slices.Contains(h.unmanagedShaped, dev.Name):
			d.Owner = string(intent.Local)
		case origin != "":
			d.Owner = string(origin)
		}
		if speed, ok := h.speed(dev.Name); ok {
			d.SpeedBps = uint64(speed)
		}
		if l, ok := links[dev.Index]; ok {
			d.Mac, d.Kind, d.Master, d.Addresses = l.mac, l.kind, l.master, l.addresses
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}

// discover detects the features of this machine once, then scans for foreign traffic control
// every foreignScanInterval until ctx ends.
func (h *host) discover(ctx context.Context) {
	features, err := h.detectFeatures(ctx)
	if err != nil && ctx.Err() == nil {
		slog.Warn("feature detection failed", "error", err)
	}
	h.mu.Lock()
	h.features = features
	h.mu.Unlock()
	h.changed()
	tick := time.NewTicker(foreignScanInterval)
	defer tick.Stop()
	for {
		if h.scan() {
			h.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// scan finds foreign traffic control, devices with groups that the agent does not configure, and the addresses of
// devices. It reports whether any of these changed.
func (h *host) scan() (changed bool) {
	foreign, unmanaged := map[string][]string{}, []string{}
	shaped := map[string]bool{}
	for _, s := range h.states() {
		shaped[s.Dev] = true
		if len(s.Foreign) > 0 {
			foreign[s.Dev] = truncateReport(s.Foreign)
		}
	}
	for _, dev := range devicesWithQdiscs() {
		if shaped[dev] {
			continue
		}
		if what := doctor.Foreign(h.engines[group.HTB], dev); len(what) > 0 {
			foreign[dev] = truncateReport(what)
		}
		if state, err := agent.Observe(h.engines, dev); err == nil && state != nil {
			unmanaged = append(unmanaged, dev)
		}
	}
	links := readLinks()
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = !reflect.DeepEqual(foreign, h.foreign) || !slices.Equal(unmanaged, h.unmanagedShaped) || !reflect.DeepEqual(links, h.links)
	h.foreign, h.unmanagedShaped, h.links = foreign, unmanaged, links
	return changed
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
func truncateReport(lines []string) (out []string) {
	for i, line := range lines {
		if i == maxReportedLines {
			return append(out, fmt.Sprintf("and %d more", len(lines)-i))
		}
		out = append(out, text.Truncate(line, maxReportedLength))
	}
	return out
}

// detectFeatures returns the doctor's checks of this machine. The doctor runs as a process of its own,
// because its trials need a new network namespace.
func (h *host) detectFeatures(ctx context.Context) (out []*agents.Feature, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	c, err := h.command(ctx, "doctor", "-o", "json")
	if err != nil {
		return nil, err
	}
	answer, err := c.Output()
	var report doctor.Report
	if wrong := json.Unmarshal(answer, &report); wrong != nil {
		if err == nil { // a non-zero exit code alone is no failure: it means that a check failed
			err = wrong
		}
		return nil, fmt.Errorf("cannot read the report of headgate doctor: %w", err)
	}
	for _, c := range report.Checks {
		if c.About == doctor.Machine {
			out = append(out, &agents.Feature{Name: c.Name, State: string(c.State), Found: text.Truncate(c.Found, maxReportedLength)})
		}
	}
	return out, nil
}
