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

// remoteAgent is an agent's part that speaks to controllers.
type remoteAgent struct {
	app       *app
	kernel    agent.Kernel
	files     func() (config.Set, error) // of this host; they win
	intent    *remote.Intent
	link      *remote.Link
	record    *record.Record
	sets      *sets.Sets
	measuring *measuring
	taken     time.Time // the second that was last recorded
	read      chan reading

	mu          sync.Mutex
	own         config.Set    // what the files said when they were read last
	fence       *agents.Fence // of what was loaded last
	troubles    map[string]string
	connections map[string][]shaper.Assignment // by device or pattern
	owners      map[string]string              // by device or pattern
	names       []string                       // devices and patterns, in their order
	unknown     []string                       // devices and patterns of which nothing is understood
	states      []shaper.State
	at          time.Time
	told        map[string]string   // names that were reported, by device
	features    []*agents.Feature   // of this machine
	foreign     map[string][]string // others' traffic control, by device
	byHand      []string            // devices that have what was applied by hand, and not what is wanted
	divided     []string            // devices of which nothing is wanted, and that have groups
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
	r := &remoteAgent{app: a, kernel: kernel, files: files, intent: intent, record: rec, sets: sets.New(), measuring: newMeasuring(), told: map[string]string{}, read: make(chan reading, 1)}
	r.link = remote.NewLink(dir, version, intent)
	r.link.Facts, r.link.Report, r.link.Usage, r.link.Probe = r.facts, r.report, r.usage, r.probe
	r.link.Serve = r.serveProbe
	r.link.Sets, r.sets.Told = r.setsDoing, r.link.SetTroubles
	return r, nil
}

// load reads this host's own files, and gives what is wanted.
func (r *remoteAgent) load() (config.Set, error) {
	own, err := r.files()
	if err != nil {
		return own, err
	}
	r.mu.Lock()
	r.own = own
	r.mu.Unlock()
	return r.latest(), nil
}

// latest is what is wanted: what this host's own files said when they were read last, and what the
// controllers want now of other devices. The files are not read again for that: what somebody is
// writing there is not in force until the agent is told so, and mistakes in it keep nothing back.
func (r *remoteAgent) latest() config.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := r.own
	set.Interfaces = slices.Clone(set.Interfaces)
	r.fence = r.intent.Fence()
	r.sets.Want(r.intent.Collectives())
	wanted, wrong := r.intent.Interfaces()
	r.troubles, r.connections, r.owners, r.names = map[string]string{}, map[string][]shaper.Assignment{}, map[string]string{}, nil
	r.unknown = nil
	for dev, err := range wrong {
		r.troubles[dev] = err.Error()
		if !slices.ContainsFunc(wanted, func(w remote.Wanted) bool { return w.Dev == dev }) {
			r.unknown = append(r.unknown, dev)
		}
	}
	for _, i := range set.Interfaces {
		r.owners[i.Dev] = "local"
		r.names = append(r.names, i.Dev)
	}
	names := r.altnames()
	own, _ := r.own.Named(names) // the agent tells of mistakes
	documents := make([]string, len(wanted))
	for n, w := range wanted {
		documents[n] = w.Dev
	}
	for _, w := range wanted {
		// A device that one of theirs names and a pattern of the host's takes in is the host's.
		if i, ok := own.For(names.Kernel(w.Dev)); ok && (i.Dev == w.Dev || !group.IsPattern(w.Dev)) {
			r.troubles[w.Dev] = fmt.Sprintf("a file of this host names it (%s): what that says is in force", i.Called())
			continue
		}
		if n := names.Of(names.Kernel(w.Dev), documents); !group.IsPattern(w.Dev) && documents[n] != w.Dev {
			r.troubles[w.Dev] = fmt.Sprintf("it is the device that is wanted otherwise as %s: that is in force", documents[n])
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

// altnames are the alternative names of this host's devices.
func (r *remoteAgent) altnames() group.Names {
	devices, err := r.kernel.Devices()
	if err != nil {
		slog.Warn("the alternative names of the devices of this host are not known", "error", err)
	}
	return agent.Names(devices)
}

// of is the document that has a device, which may have alternative names.
func (r *remoteAgent) of(dev string, names group.Names) string {
	if n := names.Of(dev, r.names); n >= 0 {
		return r.names[n]
	}
	return ""
}

// notUnderstood are the documents that are of no use to this version.
func (r *remoteAgent) notUnderstood() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unknown
}

// assigned are the connections of a document.
func (r *remoteAgent) assigned(dev string) []shaper.Assignment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections[dev]
}

// enforced tells the controller what is in force.
func (r *remoteAgent) enforced(troubles map[string]string, byHand []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHand = byHand
	for dev, trouble := range r.troubles {
		if other := troubles[dev]; other != "" {
			trouble = other + "; " + trouble
		}
		troubles[dev] = trouble
	}
	r.link.Enforced(r.fence, troubles)
}

// metered takes a reading in.
func (r *remoteAgent) metered(at time.Time, states []shaper.State) {
	// Whether a guarantee was met is told by whole seconds, also while somebody watches: in a
	// tenth of one a slow group has a packet or none. A reading comes a little after its second, or
	// before.
	if second := at.Round(100 * time.Millisecond).Truncate(time.Second); second != r.taken {
		r.taken = second
		devices := map[string][]usage.Group{}
		for _, s := range states {
			devices[s.Dev] = groupsOf(s)
		}
		select {
		case r.read <- reading{at, devices}:
		default: // the disk is slow: the next one has what this one has counted
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states, r.at = states, at
}

// reading is what the groups of all devices have counted until a time.
type reading struct {
	at      time.Time
	devices map[string][]usage.Group
}

// keep records readings until there come no more. A disk that stands still keeps nobody but it.
func (r *remoteAgent) keep() {
	for now := range r.read {
		if err := r.record.Take(now.at, now.devices); err != nil {
			slog.Warn("what groups had cannot be recorded", "error", err)
		}
	}
}

func groupsOf(s shaper.State) (out []usage.Group) {
	for _, d := range []struct {
		name  string
		tree  *group.Tree
		state *shaper.DirectionState
	}{{"out", s.Plan.Out, s.Out}, {"in", s.Plan.In, s.In}} {
		if d.tree == nil || d.state == nil {
			continue
		}
		for n, g := range d.state.Groups {
			if n >= len(d.tree.Nodes) {
				break
			}
			if g.Clients != nil {
				g.BacklogBytes = 0 // of some clients, which have their ceilings: the guarantee is of all
			}
			out = append(out, usage.Group{
				Name: d.name + "/" + g.Path, Leaf: d.tree.Nodes[n].Leaf, Guarantee: g.Guarantee, Delay: g.QueueDelay,
				Counters: usage.Counters{
					Bytes: g.Bytes, Packets: g.Packets, Drops: g.Drops, Marks: g.Marks, Backlog: g.BacklogBytes,
					QueuedFor: g.QueuedFor, Queued: g.QueuedBytes, At: d.state.At,
				},
			})
		}
	}
	return out
}

// report is the newest reading; names are told again when they are others.
func (r *remoteAgent) report() *agents.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &agents.Report{AtNs: r.at.UnixNano()}
	for _, s := range r.states {
		d := &agents.DeviceReport{Dev: s.Dev}
		for _, g := range groupsOf(s) {
			d.Names = append(d.Names, g.Name)
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
		if said := fmt.Sprint(d.Names, d.GuaranteeBps); r.told[s.Dev] == said {
			d.Names, d.GuaranteeBps = nil, nil
		} else {
			r.told[s.Dev] = said
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}

// facts are what there is; names are told anew to a controller that is asked for the first time.
func (r *remoteAgent) facts() *agents.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.told)
	out := &agents.Facts{Features: r.features}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		out.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	devices, err := r.kernel.Devices()
	if err != nil {
		slog.Warn("the devices of this host cannot be told of", "error", err)
	}
	names := agent.Names(devices)
	for _, dev := range devices {
		d := &agents.Device{Name: dev.Name, Up: dev.Up, Mtu: int32(dev.MTU), Owner: "nobody", Foreign: r.foreign[dev.Name], Altnames: dev.AltNames}
		owner := r.owners[r.of(dev.Name, names)]
		switch {
		case slices.Contains(r.byHand, dev.Name), owner == "" && slices.Contains(r.divided, dev.Name):
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

// usage answers from the record.
func (r *remoteAgent) usage(q *agents.UsageQuestion) *agents.UsageAnswer {
	out := &agents.UsageAnswer{Id: q.Id}
	all, err := r.record.Usage(time.Unix(q.Since, 0), time.Unix(q.Until, 0))
	if err != nil {
		slog.Warn("the record cannot be read", "error", err)
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

// joined tells whether a folder is of a host that has joined.
func joined(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "identity.json"))
	return err == nil
}

// run keeps the stream, and the agent beside it, until ctx ends.
func (r *remoteAgent) run(ctx context.Context, ag *agent.Agent) error {
	refresh := make(chan struct{}, 1)
	r.link.Changed = func() {
		select {
		case refresh <- struct{}{}:
		default:
		}
	}
	ag.Load, ag.Refresh, ag.Latest, ag.Connections, ag.Told = r.load, refresh, r.latest, r.assigned, r.enforced
	ag.Unknown = r.notUnderstood
	meter := make(chan time.Duration, 1)
	r.link.Closely = func(every time.Duration) {
		select {
		case <-meter: // it was not asked for yet
		default:
		}
		meter <- every
	}
	ag.Meter = meter
	others := ag.Metered
	ag.Metered, ag.MeterEvery = func(at time.Time, states []shaper.State) {
		if others != nil {
			others(at, states)
		}
		r.metered(at, states)
	}, time.Second
	ended, alone, kept := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		r.keep()
		close(kept)
	}()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		r.sets.Run(ctx)
		close(alone)
	}()
	go r.discover(ctx)
	go func() {
		err := r.link.Run(ctx)
		if err != nil {
			slog.Error("the agent goes on without a controller", "error", err)
		}
		ended <- err
	}()
	err := ag.Run(ctx)
	cancel()
	<-ended
	<-alone
	close(r.read)
	<-kept
	if closed := r.record.Close(); err == nil {
		err = closed
	}
	return err
}

// probeByCommand runs a measurement as a process of its own, which may take minutes, and gives what it
// found as JSON.
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
		Short: "Join a service: from then on its controllers say what this host is to have",
		Long: `Join has a controller sign a certificate for this host. It needs a token that was made for
that ("headgate token create --role agent --host NAME"), which is good once, and the hash of
the service's authority, which the controller says as it starts. Start "headgate agent" then.`,
		Example: `  headgate agent join https://10.0.0.1:8420 --host web1 --token-file join.token --pin yKx...
  headgate agent`,
		Args: cobra.ExactArgs(1),
	}
	dir := c.Flags().String("dir", agentDir, "keep everything in this `DIR`")
	name, _ := os.Hostname()
	host := c.Flags().String("host", name, "the `NAME` of this host, as the service has it")
	file := c.Flags().String("token-file", "", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the `HASH` of the service's authority")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *pin == "" || *file == "" {
			return usageError{errors.New("write --token-file and --pin, which the controller says as it starts"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		if err := remote.Join(c.Context(), *dir, remote.Service{URL: args[0], Host: *host, Token: token, Pin: *pin}); err != nil {
			return err
		}
		a.note("%s has joined; start \"headgate agent\" now", *host)
		return nil
	}
	return c
}

// readToken reads a token from a file.
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
		err = fmt.Errorf("there is no token in %s", file)
	}
	return token, err
}
