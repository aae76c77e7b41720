package service

import (
	"context"
	"log/slog"
	"os/exec"
	"time"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/sdnotify"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/pending"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Options are what the agent needs of its user and of the program.
type Options struct {
	// Files are the configuration files and directories; Read reads and validates them.
	Files []string
	Read  func(files []string) (config.Set, error)
	// Reload requests that the files are read again.
	Reload <-chan struct{}
	// Dir is the state directory of a host that has joined a service. State is the directory of pending
	// changes and of the agent's state file.
	Dir, State string
	Engines    map[group.Engine]shaper.Shaper
	// Speed returns the speed of a device's link, false if it is unknown.
	Speed func(dev string) (unit.Rate, bool)
	// Metrics is the address at which the groups' metrics are served; "" disables them.
	Metrics string
	// Socket is the path of the socket for programs of the host; "" disables the socket. Unless
	// SocketRequired is set, the agent also runs if it cannot open the socket.
	Socket         string
	SocketRequired bool
	// Version is the version that the controllers see.
	Version string
	// Command prepares a run of the program headgate: "probe" and "doctor", with -o json, and "probe
	// once", which calls once.Run.
	Command func(ctx context.Context, args ...string) (*exec.Cmd, error)
}

// sampleInterval is the interval at which the groups' counters are read, unless a client watches.
const sampleInterval = time.Second

// Run runs the agent until ctx ends; the shaping stays in the kernel. It logs to slog.Default. Run must
// stay on its thread if the thread's network namespace is not that of the process.
func Run(ctx context.Context, o Options) error {
	if _, err := o.load(); err != nil {
		return err // checked before anything that needs privileges
	}
	var exported *exporter
	if o.Metrics != "" {
		l, err := metrics.Listen(o.Metrics)
		if err != nil {
			return err
		}
		exported = &exporter{}
		defer metrics.Serve(l, metrics.NewGroups(exported.states, exported.meter.Unmet))()
	}
	changes, err := pending.Open(o.State)
	if err != nil {
		return err
	}
	claim, err := agent.NewClaim(o.State, o.Files)
	if err != nil {
		return shaper.WithPermission(err)
	}
	defer claim.Close()
	kernel, err := agent.OpenLinux()
	if err != nil {
		return err
	}
	defer kernel.Close()
	notify, beat := sdnotify.New()
	ag := &agent.Agent{
		Load: o.load, Engines: o.Engines, Kernel: kernel, Reload: o.Reload, StateFile: claim,
		Lock: changes.Lock, Pending: changes.Devices,
		Notify: notify, WatchdogInterval: beat, Log: slog.Default(),
	}
	closeSocket, err := o.openSocket(ag)
	if err != nil {
		return err
	}
	defer closeSocket()
	if exported != nil {
		onSample(ag, exported.take)
	}
	if !remote.HasJoined(o.Dir) {
		return ag.Run(ctx)
	}
	return o.runJoined(ctx, ag)
}

// load reads the local files. A host that has joined a service needs none.
func (o Options) load() (config.Set, error) {
	if remote.HasJoined(o.Dir) && config.NoFiles(o.Files) {
		return config.Set{}, nil
	}
	return o.Read(o.Files)
}

// onSample adds a function that the agent calls with each sample of the groups' counters.
func onSample(ag *agent.Agent, take func(at time.Time, states []shaper.State)) {
	others := ag.OnSample
	ag.SampleInterval = sampleInterval
	ag.OnSample = func(at time.Time, states []shaper.State) {
		if others != nil {
			others(at, states)
		}
		take(at, states)
	}
}
