package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/host"
	collectiveservice "headgate.dev/headgate/collective/service"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/view"
)

func collectiveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "collective",
		Short: "Keep an application's TCP connections in proportion under congestion",
		Long: `Collective measures the rate of each of an application's TCP connections while there is
no congestion, and caps the connections in that proportion while their path is congested.
The application and its congestion control need no change.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(collectiveRunCommand(a), collectiveShowCommand(a), collectiveTopCommand(a), collectiveReportCommand(a), collectiveJoinCommand(a), collectiveClearCommand(a))
	return c
}

func instanceFlag(c *cobra.Command) *string {
	return c.Flags().String("instance", "host", "the `NAME` of the instance: instances with different names run side by side and must not share connections; each name runs only once")
}

// setsFlag is tableOrJSONFlag for commands that print connection sets.
func setsFlag(c *cobra.Command) *tableOrJSON {
	output := tableOrJSONFlag(c)
	c.Flag("output").Usage = "print a table, or json: one array of all sets per line"
	return output
}

func checkInstance(name string) error {
	if !instanceName.MatchString(name) {
		return fmt.Errorf("--instance %q is not a name: use letters, digits and dashes", name)
	}
	return nil
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

// defaultMaxConnections is the default limit of connections of all sets. Each takes 256 bytes.
const defaultMaxConnections = 16384

func collectiveRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Run the connection sets of a configuration: cap them under congestion",
		Long: `Run watches the connections of each set: those that processes of its cgroup open or
accept, and those that are open already (from Linux 6.13 on), if they match one of its
rules. When one connection sees congestion (round-trip times 1.4 times the former, ECN,
retransmissions), all connections of the set are capped in proportion to the rates
learned before, or to configured weights. They are released together when the congestion
is over.

Each interval it prints the learned rate, the rate, the round-trip time and the caps of
each connection; with -o json, one array of all sets per line. On SIGTERM it removes all
caps. If it is killed, each cap ends within a second of the connection's next packet.`,
		Example: `  headgate collective run -f collective.yaml
  headgate collective run -f collective.yaml --dry-run -o json`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	dry := c.Flags().Bool("dry-run", false, "cap nothing: print the caps that would be set")
	interval := c.Flags().Duration("interval", time.Second, "time between two lines")
	maxConnections := c.Flags().Int("connections", defaultMaxConnections, "the most connections to watch; further ones are only counted. A table left by a killed program keeps its size")
	instance := instanceFlag(c)
	listen := c.Flags().String("metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9420, under /metrics")
	output := setsFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		switch {
		case len(*files) == 0:
			return usageError{errors.New("configuration is missing: set -f to a file or directory"), c.CommandPath()}
		case *interval < minInterval || *interval > maxInterval:
			return usageError{fmt.Errorf("--interval %v is out of range: set %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		case *maxConnections < 1 || *maxConnections > 1<<20:
			return usageError{fmt.Errorf("--connections %d is out of range: set 1 to %d", *maxConnections, 1<<20), c.CommandPath()}
		}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if len(set.Collectives) == 0 {
			return config.Errors{{File: (*files)[0], Message: "no connection set is configured: add a document that begins with kind: Collective"}}
		}
		var policies []collective.Policy
		for _, c := range set.Collectives {
			if i, err := host.UnknownUser(c.Policy); err != nil {
				return config.Errors{{File: c.File, Line: c.Line, Key: fmt.Sprintf("join[%d]", i), Message: fmt.Sprintf("%v: create the user, or remove it from the set %s", err, c.Name)}}
			}
			policies = append(policies, c.Policy)
		}
		return a.collectiveRun(collectiveservice.Options{
			Policies: policies, Instance: *instance, MaxConnections: *maxConnections, Interval: *interval, Metrics: *listen, DryRun: *dry, Note: a.note,
			Show: func(states []host.State) error {
				if *output == "json" {
					return json.NewEncoder(a.out).Encode(states)
				}
				return view.WriteSetConnections(a.out, time.Now(), states)
			},
		})
	}
	return c
}

// collectiveRun runs connection sets until it is interrupted.
func (a *app) collectiveRun(o collectiveservice.Options) error {
	ctx, stop := interrupted()
	defer stop()
	// If the reader of standard output exits, the write fails and the program ends in order.
	signal.Ignore(unix.SIGPIPE)
	err := collectiveservice.Run(ctx, o)
	switch {
	case errors.Is(err, sockops.ErrInUse):
		return fmt.Errorf("another instance %s is running: stop it first, or set --instance to another name; \"headgate collective show --instance %[1]s\" prints its sets", o.Instance)
	case errors.Is(err, collectiveservice.ErrPermission):
		return withRootRemedy(err)
	}
	return err
}
