package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/fabric/ovsdb"
	"headgate.dev/headgate/internal/route"
	"headgate.dev/headgate/internal/text"
)

// networkChanges is what "network connect" and "network disconnect" print.
type networkChanges struct {
	DryRun      bool                `json:"dry_run"`
	Changes     []ovsdb.Change      `json:"changes"`
	Controllers []networkController `json:"controllers,omitempty"`
}

// networkController is the connection of a bridge to a controller.
type networkController struct {
	Bridge    string `json:"bridge"`
	Target    string `json:"target"`
	Connected bool   `json:"connected"`
	Error     string `json:"error,omitempty"`
}

func networkConnectCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "connect BRIDGE...",
		Short: "Make bridges of Open vSwitch switches of the network",
		Long: `Connect configures bridges of Open vSwitch, of this machine or at --db, for the controllers of a
network, in one transaction: the controllers, to which they connect again every second, their
certificates, OpenFlow 1.3 beside the versions that are enabled, fail mode secure, no in-band control,
and two VLAN tags (vlan-limit). It prints each change, and then whether the bridges are connected.

Open vSwitch removes the flows of a bridge that gets its first controller, and the bridge forwards
nothing until a controller has connected. What it had before is kept in its external_ids, and
"headgate network disconnect" restores it. A bridge that has another controller is refused without
--replace. Run it again with other controllers to replace those of the first time.

--ca, --cert and --key are the files that "headgate network certificate" writes. They are used for
controllers at ssl:, must be on the machine of the switch, and are the same for all its bridges.
Switches reach controllers over a network of their own, not over their bridges.`,
		Example: `  headgate network connect br0 --controller tcp:10.9.0.1:6653 --dry-run
  headgate network connect br0 --controller ssl:10.9.0.1:6653 --ca ca.pem --cert cert.pem --key key.pem
  headgate network connect br0 br1 --db tcp:10.9.0.7:6640 --controller tcp:10.9.0.1 --controller tcp:10.9.0.2`,
		Args: cobra.MinimumNArgs(1),
	}
	var db ovsdbFlags
	var files pemFiles
	want := ovsdb.ConnectConfig{}
	db.add(c)
	targets := c.Flags().StringArray("controller", nil, "a controller, `ssl:ADDRESS` or tcp:ADDRESS, with :PORT if it is not 6653; repeat it for several")
	c.Flags().StringVar(&files.ca, "ca", "", "the authority of controllers at ssl:, a PEM `FILE` of the switch")
	c.Flags().StringVar(&files.cert, "cert", "", "the certificate of the switch, a PEM `FILE` of the switch")
	c.Flags().StringVar(&files.key, "key", "", "the private key of --cert, a PEM `FILE` of the switch")
	c.Flags().BoolVar(&want.Replace, "replace", false, "replace controllers and certificates of other programs")
	c.Flags().BoolVar(&want.DryRun, "dry-run", false, "print the changes, and make none")
	wait := c.Flags().Duration("wait", 15*time.Second, "how long to wait for the connection to controllers; Open vSwitch reports it every 5 s")
	output := outputFlag(c)
	requireFlags(c, "controller")
	c.ValidArgsFunction = completeBridges(&db)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		want.Bridges = slices.Compact(slices.Sorted(slices.Values(args)))
		for _, text := range *targets {
			target, err := ovsdb.ParseTarget(text)
			if err != nil {
				return usageError{fmt.Errorf("--controller: %w", err), c.CommandPath()}
			}
			if !slices.Contains(want.Controllers, target) {
				want.Controllers = append(want.Controllers, target)
			}
		}
		if want.SSL, err = files.onSwitch(db.local()); err != nil {
			return usageError{err, c.CommandPath()}
		}
		if db.local() {
			if err := overBridge(want); err != nil {
				return err
			}
		}
		return a.connectNetwork(db, want, *wait, *output)
	}
	return c
}

// overBridge returns an error if a controller is reached over a bridge that is to be connected to it.
func overBridge(want ovsdb.ConnectConfig) error {
	for _, target := range want.Controllers {
		_, rest, _ := strings.Cut(target, ":")
		host, _, _ := net.SplitHostPort(rest)
		address, err := netip.ParseAddr(host)
		if err != nil {
			continue // a name
		}
		devices, _ := route.Devices(address) // without a route, the switch connects when there is one
		for _, d := range devices {
			if slices.Contains(want.Bridges, d) {
				return fmt.Errorf("this machine reaches %s over the bridge %s itself, which forwards only when that controller has connected: give the machine an address outside of %s", target, d, d)
			}
		}
	}
	return nil
}

func (a *app) connectNetwork(db ovsdbFlags, want ovsdb.ConnectConfig, wait time.Duration, output format) error {
	ctx, stop := interrupted()
	defer stop()
	change, cancel := context.WithTimeout(ctx, ovsdbTimeout)
	defer cancel()
	s, err := db.dial(change)
	if err != nil {
		return err
	}
	defer s.Close()
	out := networkChanges{DryRun: want.DryRun}
	var applied ovsdb.Applied
	if out.Changes, applied, err = s.Connect(change, want); err != nil {
		return err
	}
	if out.DryRun {
		return a.printChanges(output, out)
	}
	if err = waitApplied(change, s, applied); err == nil && wait > 0 {
		out.Controllers, err = connections(ctx, s, want.Bridges, wait)
	}
	return errors.Join(a.printChanges(output, out), err)
}

// waitApplied waits until ovs-vswitchd has applied a change.
func waitApplied(ctx context.Context, s *ovsdb.Session, change ovsdb.Applied) error {
	running, err := s.Running(ctx)
	if err == nil && !running {
		err = errors.New("the database has the configuration, but ovs-vswitchd is not running: systemctl start openvswitch-switch")
	}
	if err != nil {
		return err
	}
	return s.WaitApplied(ctx, change.NextCfg)
}

// connections waits for the connections of bridges to their controllers, and returns them. A bridge without any is an
// error.
func connections(ctx context.Context, s *ovsdb.Session, bridges []string, wait time.Duration) (out []networkController, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	state, err := s.WaitConnected(ctx, bridges)
	if err != nil {
		return nil, err
	}
	for _, name := range bridges {
		b := state.Bridge(name)
		if b == nil {
			continue // deleted meanwhile
		}
		some := false
		for _, k := range b.Controllers {
			if !k.Service {
				some = some || k.Connected
				out = append(out, networkController{name, k.Target, k.Connected, k.LastError})
			}
		}
		if !some {
			err = fmt.Errorf("the bridge %s is configured, but no controller is connected after %v: check the addresses, and that the controllers accept switches (headgate network show)", name, wait)
		}
	}
	return out, err
}

func networkDisconnectCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "disconnect BRIDGE...",
		Short: "Restore what bridges had before they were connected",
		Long: `Disconnect restores what "headgate network connect" has changed in bridges of Open vSwitch, and what
all bridges share when no connected bridge is left. It leaves what another program has changed since, and
bridges that are not connected. Open vSwitch removes the flows of a bridge that loses its last controller,
and in fail mode standalone, its default, it then forwards like an Ethernet switch.`,
		Example: `  headgate network disconnect br0 --dry-run
  headgate network disconnect br0 br1 --db tcp:10.9.0.7:6640`,
		Args: cobra.MinimumNArgs(1),
	}
	var db ovsdbFlags
	db.add(c)
	dryRun := c.Flags().Bool("dry-run", false, "print the changes, and make none")
	output := outputFlag(c)
	c.ValidArgsFunction = completeBridges(&db)
	c.RunE = func(_ *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(context.Background(), ovsdbTimeout)
		defer cancel()
		s, err := db.dial(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		out := networkChanges{DryRun: *dryRun}
		var applied ovsdb.Applied
		if out.Changes, applied, err = s.Disconnect(ctx, args, *dryRun); err != nil {
			return err
		}
		if applied.Changed {
			err = waitApplied(ctx, s, applied)
		}
		return errors.Join(a.printChanges(*output, out), err)
	}
	return c
}

func (a *app) printChanges(f format, out networkChanges) error {
	if len(out.Changes) == 0 {
		out.Changes = []ovsdb.Change{}
		a.note("nothing to change")
	}
	return a.print(f, out, func(w io.Writer) error {
		if len(out.Changes) > 0 {
			values := func(list []string) string {
				if len(list) == 0 {
					return "-"
				}
				return strings.Join(list, " ")
			}
			rows := [][]string{{"BRIDGE", "SETTING", "BEFORE", map[bool]string{false: "NOW", true: "WOULD BE"}[out.DryRun]}}
			for _, c := range out.Changes {
				bridge := c.Bridge
				if bridge == "" {
					bridge = "all"
				}
				rows = append(rows, []string{bridge, c.Setting, values(c.Before), values(c.After)})
			}
			if err := text.Table(w, "", rows); err != nil {
				return err
			}
		}
		if len(out.Controllers) == 0 {
			return nil
		}
		if len(out.Changes) > 0 {
			fmt.Fprintln(w)
		}
		rows := [][]string{{"BRIDGE", "CONTROLLER", "STATE"}}
		for _, k := range out.Controllers {
			state := "connected"
			if !k.Connected {
				state = strings.TrimSuffix("not connected: "+k.Error, ": ")
			}
			rows = append(rows, []string{k.Bridge, k.Target, state})
		}
		return text.Table(w, "", rows)
	})
}
