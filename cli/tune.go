package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/probe/tune/device"
	"headgate.dev/headgate/rollout"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

func tuneCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "tune DEV --peer HOST[:PORT]",
		Short: "Propose limits for a device from the measured path",
		Long: `Tune measures the path to a host that runs "headgate probe serve", through DEV and in
both directions, and proposes limits for DEV slightly below the token rates: by --margin
below the lower end of the confidence interval. With such a limit the queue is on this
host, where groups share the bandwidth, and not at the provider, who drops packets.

Tune prints a configuration for "headgate check -f -", with the measurements and the
output of "headgate plan" as comments. With -f the configuration is the file's, with new
limits and no other change: guarantees in percent change with the limit, and directions
without a limit in the file stay unlimited.

With --apply, tune applies the limits like "headgate apply --confirm-within", measures
again, and prints the received and lost packets. Keep the limits with "headgate confirm"
in time. The file is not changed.

If the token rate cannot be estimated, tune proposes nothing and prints the reason. A
bucket hides the rate until it is empty, so tune verifies each limit with a train that
empties a bucket of 5 MB. --bytes bounds all measurements. If DEV already has a lower
limit in force than the path, tune can measure only this limit, and reports it.

An inbound limit acts on packets that already passed the path: TCP and other senders with
congestion control adapt to it. Only the provider can limit other senders.

With --server tune measures nothing. It proposes limits for a device of a host of a
service from the newest token rates of "headgate probe schedule". Apply the output with
"headgate apply --server".`,
		Example: `  headgate tune eth0 --peer server.example.org > eth0.yaml
  headgate tune eth0 --peer server.example.org -f /etc/headgate/eth0.yaml
  headgate tune eth0 --peer server.example.org -f /etc/headgate/eth0.yaml --apply && headgate confirm
  headgate tune eth0 --server default --host web1 > web1.yaml`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeDevices()(c, args, begun)
		},
	}
	var f tuneFlags
	f.margin, f.bytes = shareFlag(tune.Margin), bytesFlag(tune.Budget)
	c.Flags().StringVar(&f.peer, "peer", "", "host to measure to, which runs \"headgate probe serve\"")
	c.Flags().StringArrayVarP(&f.files, "file", "f", nil, "configuration with DEV's groups: a file, a directory, or - (may be repeated)")
	c.Flags().Var(&f.margin, "margin", "margin below the measured rate")
	c.Flags().Var(&f.bytes, "bytes", "send at most this much in each direction")
	c.Flags().DurationVar(&f.time, "time", 30*time.Second, "measure at most this long in each direction")
	c.Flags().Var(&f.capacity, "capacity", "use this capacity of the path instead of measuring it")
	c.Flags().StringVar(&f.log, "log", "", "write the samples to a file, for \"headgate probe replay\"")
	c.Flags().BoolVar(&f.apply, "apply", false, "apply the limits, and measure again")
	c.Flags().DurationVar(&f.within, "confirm-within", time.Minute, "with --apply: roll back unless \"headgate confirm\" is run within this time")
	f.auth.add(c)
	f.output = outputFlag(c)
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		margin := unit.Share(f.margin)
		if margin >= unit.Whole/2 {
			return usageError{fmt.Errorf("a margin of %v is too large: write less than 50%%, for example 1%%", margin), c.CommandPath()}
		}
		if at.isSet() {
			if err := at.rejectFlags(c, localTuneFlags...); err != nil {
				return err
			}
			return a.tuneRemote(c.Context(), at, args[0], margin, *f.output)
		}
		if f.peer == "" {
			return usageError{errors.New("--peer is missing: " + c.Flag("peer").Usage), c.CommandPath()}
		}
		peer, err := measure.ParseHost(f.peer)
		switch {
		case err != nil:
		case f.bytes == 0 || f.time <= 0:
			err = errors.New("--bytes and --time must be more than 0")
		case f.within < minConfirm || f.within > maxConfirm:
			err = fmt.Errorf("--confirm-within %v is out of range: write %v to %v", f.within, minConfirm, maxConfirm)
		}
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		auth, err := f.auth.client()
		if err != nil {
			return err
		}
		t, err := a.loadTuneTarget(c, a.dev(args[0]), f.files)
		if err != nil {
			return err
		}
		return a.tune(t, device.Options{
			Options: measure.Options{Session: session.Options{Auth: auth}, Log: f.log}, Peer: peer,
			Margin: margin, Bytes: unit.Bytes(f.bytes), Time: f.time, Capacity: unit.Rate(f.capacity), Burst: tuneBurst,
		}, f)
	}
	return c
}

type tuneFlags struct {
	auth     authFlags
	peer     string
	files    []string
	margin   shareFlag
	bytes    bytesFlag
	time     time.Duration
	capacity rateFlag
	log      string
	apply    bool
	within   time.Duration
	output   *format
}

// loadTuneTarget reads the configuration of a device, if there is one, and the limits in force.
func (a *app) loadTuneTarget(c *cobra.Command, dev string, files []string) (*device.Target, error) {
	t := device.NewTarget(dev)
	if len(files) > 0 {
		set, err := a.loadInterfaces(c, files, true)
		if err != nil {
			return nil, err
		}
		i, ok := set.For(dev)
		switch {
		case !ok:
			return nil, usageError{fmt.Errorf("%s has no document for %s: select another file, or remove -f", strings.Join(files, ", "), dev), c.CommandPath()}
		case i.Perspective == group.Guest:
			return nil, usageError{fmt.Errorf("%s: %s carries a guest's traffic, and measurements from this host do not pass through it: run tune inside the guest", i.Name(), dev), c.CommandPath()}
		case i.Engine == group.Quantum:
			return nil, usageError{fmt.Errorf("%s: engine quantum counts payload, and cannot stay below a limit that counts frames: write engine: htb to tune %s", i.Name(), dev), c.CommandPath()}
		}
		t.Interface, t.Source = i.Resolved.Interface, i.File
		t.Interface.Dev = dev // the file may have a pattern, but only this device is tuned
	}
	now, err := a.observer().Observe(dev)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		return t, nil
	case err != nil:
		return nil, err
	case t.Source == "":
		return nil, usageError{fmt.Errorf("%s has groups in force, which the proposal would replace: select their file with -f, or run \"headgate clear --dev %[1]s\" first", dev), c.CommandPath()}
	}
	for d, tree := range map[probe.Direction]*group.Tree{probe.Out: now.Plan.Out, probe.In: now.Plan.In} {
		if tree != nil {
			t.InForce[d] = tree.Limit
		}
	}
	return t, nil
}

// tune measures, proposes limits, and with --apply applies them and measures again.
func (a *app) tune(t *device.Target, o device.Options, f tuneFlags) error {
	ctx, stop := interrupted()
	defer stop()
	progress := a.progress(*f.output)
	defer progress.Clear()
	o.OnProgress = progress.Show
	o.Compare = func(set config.Set) ([]diff.Entry, error) {
		progress.Clear() // warnings are not printed onto its line
		steps, err := a.steps(set, false)
		return rollout.Entries(steps), err
	}
	o.Observe = func() (shaper.State, error) { return a.observer().Observe(t.Dev) }
	if f.apply {
		o.Within = f.within
		o.Apply = func(set config.Set) (time.Time, error) {
			progress.Clear()
			return a.applyConfig(set, false, f.within, func(rollout.Step) {})
		}
	}
	r, err := device.Tune(ctx, t, o)
	progress.Clear()
	if r == nil {
		return err
	}
	if err := errors.Join(a.print(*f.output, r, r.Write), err); err != nil || r.Limits() > 0 {
		return err
	}
	return errReported
}

// tuneBurst is the burst of a limit, for the common MTU of 1500 bytes.
func tuneBurst(limit unit.Rate) unit.Bytes { return htb.Burst(limit, 1500) }
