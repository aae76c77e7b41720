package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate/agent"
	"headgate/agent/record"
	"headgate/agent/remote"
	"headgate/agent/sets"
	"headgate/api/agents"
	"headgate/config"
	"headgate/group"
	"headgate/shaper"
	"headgate/usage"
)

const agentDir = "/var/lib/headgate/agent"

// remoteAgent is the part of the agent that communicates with controllers.
type remoteAgent struct {
	app          *app
	kernel       agent.Kernel
	files        func() (config.Set, error) // the local files, which take precedence
	intent       *remote.DesiredState
	link         *remote.Link
	record       *record.Record
	waitSets     *sets.Sets
	measurements *measurementLock
	lastRecorded time.Time // the last recorded second
	readings     chan reading

	mu              sync.Mutex
	inForce         config.Set    // the local files as last loaded
	fence           *agents.Fence // of the desired state that was merged last
	troubles        map[string]string
	connections     map[string][]shaper.Assignment // by device or pattern
	owners          map[string]string              // by device or pattern
	names           []string                       // devices and patterns, in order of precedence
	unknown         []string                       // devices and patterns whose documents this version cannot parse
	states          []shaper.State
	at              time.Time
	reportedNames   map[string]string   // group names and guarantees that were reported, by device
	features        []*agents.Feature   // of this machine
	foreign         map[string][]string // foreign traffic control, by device
	manuallyChanged []string            // devices with a manual change that differs from the desired state
	unmanagedShaped []string            // devices with groups and without a desired state
}

func (a *app) openRemote(dir string, kernel agent.Kernel, files func() (config.Set, error)) (*remoteAgent, error) {
	intent, err := remote.OpenIntent(dir)
	if err != nil {
		return nil, err
	}
	rec, err := record.Open(filepath.Join(dir, "record"))
	if err != nil {
		return nil, err
	}
	r := &remoteAgent{app: a, kernel: kernel, files: files, intent: intent, record: rec, waitSets: sets.New(), measurements: newMeasuring(), reportedNames: map[string]string{}, readings: make(chan reading, 1)}
	r.link = remote.NewLink(dir, version, intent)
	r.link.Facts, r.link.Report, r.link.Usage, r.link.Probe = r.facts, r.report, r.usage, r.probe
	r.link.Serve = r.serveProbe
	r.link.Sets, r.waitSets.Report = r.setStates, r.link.SetSetErrors
	return r, nil
}

// load reads the local files and returns the merged desired state.
func (r *remoteAgent) load() (config.Set, error) {
	own, err := r.files()
	if err != nil {
		return own, err
	}
	r.mu.Lock()
	r.inForce = own
	r.mu.Unlock()
	return r.desiredState(), nil
}

// desiredState merges the desired state: the local files as last loaded, and the controllers' documents for
// all other devices. The files are not read again: a file that is being edited takes effect at the
// next reload, and an error in it does not delay the controllers' changes.
func (r *remoteAgent) desiredState() config.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := r.inForce
	set.Interfaces = slices.Clone(set.Interfaces)
	r.fence = r.intent.Fence()
	r.waitSets.SetDesired(r.intent.Collectives())
	wanted, wrong := r.intent.Interfaces()
	r.troubles, r.connections, r.owners, r.names = map[string]string{}, map[string][]shaper.Assignment{}, map[string]string{}, nil
	r.unknown = nil
	for dev, err := range wrong {
		r.troubles[dev] = err.Error()
		if !slices.ContainsFunc(wanted, func(w remote.Interface) bool { return w.Dev == dev }) {
			r.unknown = append(r.unknown, dev)
		}
	}
	for _, i := range set.Interfaces {
		r.owners[i.Dev] = "local"
		r.names = append(r.names, i.Dev)
	}
	names := r.altnames()
	own, _ := r.inForce.WithAltNames(names) // the agent reports the errors
	documents := make([]string, len(wanted))
	for n, w := range wanted {
		documents[n] = w.Dev
	}
	for _, w := range wanted {
		// A local pattern takes precedence over a controller's document that names the device.
		if i, ok := own.For(names.Kernel(w.Dev)); ok && (i.Dev == w.Dev || !group.IsPattern(w.Dev)) {
			r.troubles[w.Dev] = fmt.Sprintf("a local file of the host configures the device (%s) and takes precedence", i.WrittenDev())
			continue
		}
		if n := names.Of(names.Kernel(w.Dev), documents); !group.IsPattern(w.Dev) && documents[n] != w.Dev {
			r.troubles[w.Dev] = fmt.Sprintf("the device has another document under the name %s, which takes precedence", documents[n])
			continue
		}
		set.Interfaces = append(set.Interfaces, w.Interface)
		r.owners[w.Dev] = "controller"
		r.names = append(r.names, w.Dev)
		for name, c := range w.Connections {
			if proto, a, b, err := group.ParseConn(name); err == nil {
				r.connections[w.Dev] = append(r.connections[w.Dev], shaper.Assignment{Conn: shaper.Conn{Proto: proto, A: a, B: b}, Group: c.Group})
			}
		}
		slices.SortFunc(r.connections[w.Dev], func(a, b shaper.Assignment) int { return strings.Compare(a.Conn.String(), b.Conn.String()) })
	}
	return set
}

// altnames returns the alternative names of this host's devices.
func (r *remoteAgent) altnames() group.AltNames {
	devices, err := r.kernel.Devices()
	if err != nil {
		slog.Warn("cannot list the alternative names of network devices", "error", err)
	}
	return agent.Names(devices)
}

// documentOf returns the name of the document that configures a device, by any name of the device.
func (r *remoteAgent) documentOf(dev string, names group.AltNames) string {
	if n := names.Of(dev, r.names); n >= 0 {
		return r.names[n]
	}
	return ""
}

// unparsableDocuments returns the documents that this version cannot parse.
func (r *remoteAgent) unparsableDocuments() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unknown
}

// assigned returns the connections that a document assigns.
func (r *remoteAgent) assigned(dev string) []shaper.Assignment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections[dev]
}

// reportEnforced reports to the controller which revision is in force, and the problems of each device.
func (r *remoteAgent) reportEnforced(troubles map[string]string, byHand []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manuallyChanged = byHand
	for dev, trouble := range r.troubles {
		if other := troubles[dev]; other != "" {
			trouble = other + "; " + trouble
		}
		troubles[dev] = trouble
	}
	r.link.SetApplied(r.fence, troubles)
}

// storeReading stores the newest reading, and queues one reading a second for the record.
func (r *remoteAgent) storeReading(at time.Time, states []shaper.State) {
	// Whether a guarantee was met is determined per whole second, also while a client watches at a
	// higher rate: in 100 ms a slow group sends one packet or none. A reading is taken slightly
	// before or after its second.
	if second := at.Round(100 * time.Millisecond).Truncate(time.Second); second != r.lastRecorded {
		r.lastRecorded = second
		devices := map[string][]usage.Direction{}
		for _, s := range states {
			devices[s.Dev] = s.Usage()
		}
		select {
		case r.readings <- reading{at, devices}:
		default: // the disk is slow; counters are cumulative, so the next reading includes this one
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states, r.at = states, at
}

// reading has the counters of the groups of all devices at one time.
type reading struct {
	at      time.Time
	devices map[string][]usage.Direction
}

// writeRecord writes readings to the record until the channel closes. A slow disk delays only this goroutine.
func (r *remoteAgent) writeRecord() {
	for now := range r.readings {
		if err := r.record.Add(now.at, now.devices); err != nil {
			slog.Warn("cannot write usage record", "error", err)
		}
	}
}

// report returns the newest reading. It has the names and guarantees of a device's groups only if they
// changed since the last report.
func (r *remoteAgent) report() *agents.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &agents.Report{AtNs: r.at.UnixNano()}
	for _, s := range r.states {
		d := &agents.DeviceReport{Dev: s.Dev}
		for _, u := range s.Usage() {
			d.Directions = append(d.Directions, &agents.DirectionReport{Name: u.Name, LimitBps: uint64(u.Limit), ControlBytes: u.Control.Bytes})
			for _, g := range u.Groups {
				d.Names = append(d.Names, u.Key(g))
				d.GuaranteeBps = append(d.GuaranteeBps, uint64(g.Guarantee))
				d.Bytes = append(d.Bytes, g.Bytes)
				d.BacklogBytes = append(d.BacklogBytes, g.Backlog)
				d.Drops = append(d.Drops, g.Drops)
				d.Marks = append(d.Marks, g.Marks)
				d.QueueDelayNs = append(d.QueueDelayNs, uint64(g.Delay))
				d.QueuedNs = append(d.QueuedNs, uint64(g.QueuedFor))
				d.QueuedBytes = append(d.QueuedBytes, g.Queued)
				d.ReadAtNs = append(d.ReadAtNs, g.At.UnixNano())
			}
		}
		if said := fmt.Sprint(d.Names, d.GuaranteeBps); r.reportedNames[s.Dev] == said {
			d.Names, d.GuaranteeBps = nil, nil
		} else {
			r.reportedNames[s.Dev] = said
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}

// facts describes the host and its devices. It is sent first on a new connection, so the next report
// has all names again.
func (r *remoteAgent) facts() *agents.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.reportedNames)
	out := &agents.Facts{Features: r.features}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		out.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	devices, err := r.kernel.Devices()
	if err != nil {
		slog.Warn("cannot list network devices", "error", err)
	}
	names := agent.Names(devices)
	for _, dev := range devices {
		d := &agents.Device{Name: dev.Name, Up: dev.Up, Mtu: int32(dev.MTU), Owner: "nobody", Foreign: r.foreign[dev.Name], Altnames: dev.AltNames}
		owner := r.owners[r.documentOf(dev.Name, names)]
		switch {
		case slices.Contains(r.manuallyChanged, dev.Name), owner == "" && slices.Contains(r.unmanagedShaped, dev.Name):
			d.Owner = "local"
		case owner != "":
			d.Owner = owner
		}
		if speed, ok := r.app.speed(dev.Name); ok {
			d.SpeedBps = uint64(speed)
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}

// usage answers a query from the record.
func (r *remoteAgent) usage(q *agents.UsageQuestion) *agents.UsageAnswer {
	out := &agents.UsageAnswer{Id: q.Id}
	all, err := r.record.Usage(time.Unix(q.Since, 0), time.Unix(q.Until, 0))
	if err != nil {
		slog.Warn("cannot read usage record", "error", err)
	}
	for dev, groups := range all {
		for name, u := range groups {
			out.Rows = append(out.Rows, &agents.Usage{
				Dev: dev, Group: name, Seconds: uint64(u.Seconds + 0.5), OfferedBytes: u.Offered, DeliveredBytes: u.Delivered,
				GuaranteedBytes: u.Guaranteed, BorrowedBytes: u.Borrowed, LentBytes: u.Lent, Drops: u.Drops, Marks: u.Marks, UnmetSeconds: uint64(u.Unmet + 0.5),
			})
		}
	}
	return out
}

// hasJoined reports whether dir is the state directory of a host that has joined a service.
func hasJoined(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "identity.json"))
	return err == nil
}

// run runs the agent and its stream to the controllers until ctx ends.
func (r *remoteAgent) run(ctx context.Context, ag *agent.Agent) error {
	refresh := make(chan struct{}, 1)
	r.link.Changed = func() {
		select {
		case refresh <- struct{}{}:
		default:
		}
	}
	ag.Load, ag.Refresh, ag.Latest, ag.Connections, ag.Report = r.load, refresh, r.desiredState, r.assigned, r.reportEnforced
	ag.Unknown = r.unparsableDocuments
	meter := make(chan time.Duration, 1)
	r.link.SetReportInterval = func(every time.Duration) {
		select {
		case <-meter: // replace an interval that the agent has not read yet
		default:
		}
		meter <- every
	}
	ag.SetSampleInterval = meter
	others := ag.OnSample
	ag.OnSample, ag.SampleInterval = func(at time.Time, states []shaper.State) {
		if others != nil {
			others(at, states)
		}
		r.storeReading(at, states)
	}, time.Second
	ended, alone, kept := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		r.writeRecord()
		close(kept)
	}()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		r.waitSets.Run(ctx)
		close(alone)
	}()
	go r.discover(ctx)
	go func() {
		err := r.link.Run(ctx)
		if err != nil {
			slog.Error("connection to the controller ended, the agent continues without it", "error", err)
		}
		ended <- err
	}()
	err := ag.Run(ctx)
	cancel()
	<-ended
	<-alone
	close(r.readings)
	<-kept
	if closed := r.record.Close(); err == nil {
		err = closed
	}
	return err
}

// probeByCommand runs "headgate probe" as a process of its own, which may take minutes, and returns its
// result as JSON.
func (a *app) probeByCommand(ctx context.Context, what, peer string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "probe", what, "-o", "json", "--", peer)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

func agentJoinCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "join URL --host NAME",
		Short: "Register this host with a service, whose controllers then configure it",
		Long: `Join requests a client certificate for this host from a controller. It needs a join token
("headgate token create --role agent --host NAME"), which is valid once, and the certificate
pin of the service, which the controller prints when it starts. Then start "headgate agent".`,
		Example: `  headgate agent join https://10.0.0.1:8420 --host web1 --token-file join.token --pin yKx...
  headgate agent`,
		Args: cobra.ExactArgs(1),
	}
	dir := c.Flags().String("dir", agentDir, "the state `DIR`")
	name, _ := os.Hostname()
	host := c.Flags().String("host", name, "the `NAME` of this host in the service")
	file := c.Flags().String("token-file", "", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the certificate pin: SHA-256 `HASH` of the service's certificate authority")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *pin == "" || *file == "" {
			return usageError{errors.New("--token-file or --pin is missing: the controller prints the pin when it starts"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		if err := remote.Join(c.Context(), *dir, remote.Controller{URL: args[0], Host: *host, Token: token, Pin: *pin}); err != nil {
			return err
		}
		a.note("host %s has joined; start \"headgate agent\" now", *host)
		return nil
	}
	return c
}

// readToken reads a token from a file; "-" is standard input.
func readToken(file string, stdin io.Reader) (string, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, 1000))
	} else {
		text, err = os.ReadFile(file)
	}
	token := strings.TrimSpace(string(text))
	if err == nil && token == "" {
		err = fmt.Errorf("token file %s is empty", file)
	}
	return token, err
}
