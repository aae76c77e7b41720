package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate/cli/view"
	"headgate/collective"
	"headgate/collective/host"
	"headgate/collective/sockops"
	"headgate/config"
	"headgate/metrics"
)

func collectiveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "collective",
		Short: "Keep an application's TCP connections in proportion under congestion",
		Long: `Collective learns what each of an application's TCP connections needs while all is well,
and caps them in that proportion while their path is congested. Applications and
congestion control stay as they are.`,
		Args: cobra.NoArgs,
	}
	c.AddCommand(collectiveRunCommand(a), collectiveShowCommand(a), collectiveTopCommand(a), collectiveJoinCommand(a), collectiveClearCommand(a))
	return c
}

func instanceFlag(c *cobra.Command) *string {
	return c.Flags().String("instance", "host", "a `NAME`: programs of different names run beside each other, of one name only one does")
}

func checkInstance(name string) error {
	if !instanceName.MatchString(name) {
		return fmt.Errorf("--instance %q is not a name: write letters, digits and dashes", name)
	}
	return nil
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

// mostConnections of all sets, by default; each takes 256 bytes.
const mostConnections = 16384

func collectiveRunCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Watch the sets of a configuration, and cap them under congestion",
		Long: `Run watches the connections of each set: those that the processes of its cgroup have
open (from Linux 6.13 on), open or accept, if one of its rules is true of them. While
one of them sees congestion (round trips of 1.4 times what they were, ECN,
retransmissions) all of the set are held in proportion to what they needed before, or
to weights given by hand, and let go together when it is over.

It prints each connection's rate, need and cap every interval, with -o json one object
a line. When it is told to end it lifts all caps; when it is killed they end by themselves
within a second of the connection's next packet.`,
		Example: `  headgate collective run -f collective.yaml
  headgate collective run -f collective.yaml --dry-run -o json`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	dry := c.Flags().Bool("dry-run", false, "cap nothing: only show what it would do")
	interval := c.Flags().Duration("interval", time.Second, "time between two lines")
	most := c.Flags().Int("connections", mostConnections, "watch no more than this; others are left alone, and counted")
	instance := instanceFlag(c)
	listen := c.Flags().String("metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9420, under /metrics")
	output := tableOrJSONFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		switch {
		case len(*files) == 0:
			return usageError{errors.New("there is no configuration: write -f and a file or directory"), c.CommandPath()}
		case *interval < minInterval || *interval > maxInterval:
			return usageError{fmt.Errorf("--interval %v is not possible: write %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		case *most < 1 || *most > 1<<20:
			return usageError{fmt.Errorf("--connections %d is not possible: write 1 to %d", *most, 1<<20), c.CommandPath()}
		}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if len(set.Collectives) == 0 {
			return config.Mistakes{{File: (*files)[0], Message: "there is no set of connections in it: write a document that begins with kind: Collective"}}
		}
		var policies []collective.Policy
		for _, c := range set.Collectives {
			policies = append(policies, c.Policy)
		}
		return a.collectiveRun(collectiveRun{policies, *instance, *most, *interval, *listen, *dry, *output})
	}
	return c
}

// collectiveRun is what was asked of "headgate collective run".
type collectiveRun struct {
	policies []collective.Policy
	instance string
	most     int
	interval time.Duration
	metrics  string
	dry      bool
	output   tableOrJSON
}

func (a *app) collectiveRun(r collectiveRun) (err error) {
	ctx, stop := interrupted()
	defer stop()
	// Whoever read what it prints may go away: that is an end like any other.
	signal.Ignore(unix.SIGPIPE)
	table, err := sockops.Open(r.instance, r.most)
	if err != nil {
		return err
	}
	defer table.Close()
	h, err := host.New(table, r.policies, r.dry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	server, err := h.Serve(r.instance)
	if err != nil {
		return err
	}
	defer server.Close()
	if r.metrics != "" {
		stop, err := metrics.Serve(r.metrics, metrics.Collective(server.States))
		if err != nil {
			return err
		}
		defer stop()
	}
	a.note("watching %s; the end lifts all caps", count(len(r.policies), "set"))
	refused := uint64(0)
	return h.Run(ctx, r.interval, func(states []host.State) error {
		if n, err := table.Refused(); err == nil && n > refused {
			refused = n
			a.note("%d connections are left alone: more than --connections %d", n, r.most)
		}
		if r.output == "json" {
			return json.NewEncoder(a.out).Encode(states)
		}
		return a.collectiveLines(states)
	})
}

// collectiveLines prints each connection's line.
func (a *app) collectiveLines(states []host.State) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	now := time.Now().Format(time.TimeOnly)
	for _, s := range states {
		for _, c := range s.Connections {
			limit := "-"
			if c.Window > 0 {
				limit = sizeText(float64(c.Window))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\tneeds %v\thas %v\t%v\twindow %s\n", now, setName(s), setState(s), c.Local, c.Remote,
				view.Rate(float64(c.Needs)), view.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), limit)
		}
	}
	return w.Flush()
}
