package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
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
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(collectiveRunCommand(a), collectiveShowCommand(a), collectiveTopCommand(a), collectiveJoinCommand(a), collectiveClearCommand(a))
	return c
}

func instanceFlag(c *cobra.Command) *string {
	return c.Flags().String("instance", "host", "a `NAME`: programs of different names run beside each other, and must have no connection in common; of one name only one does")
}

// setsFlag is tableOrJSONFlag for commands that print sets.
func setsFlag(c *cobra.Command) *tableOrJSON {
	output := tableOrJSONFlag(c)
	c.Flag("output").Usage = "print for people, or as json, an array of all sets a line"
	return output
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

It prints what each connection needs and has, its round trip and its cap every interval, with
-o json an array of all sets a line. When it is told to end it lifts all caps; when it is killed
they end by themselves within a second of the connection's next packet.`,
		Example: `  headgate collective run -f collective.yaml
  headgate collective run -f collective.yaml --dry-run -o json`,
		Args: cobra.NoArgs,
	}
	files := fileFlag(c)
	dry := c.Flags().Bool("dry-run", false, "cap nothing: the caps that it shows are what it would do")
	interval := c.Flags().Duration("interval", time.Second, "time between two lines")
	most := c.Flags().Int("connections", mostConnections, "watch no more than this, and count the others; what a killed program left keeps its size")
	instance := instanceFlag(c)
	listen := c.Flags().String("metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9420, under /metrics")
	output := setsFlag(c)
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
	var listener net.Listener
	if r.metrics != "" {
		// Before anything is in the kernel: an address may be taken.
		if listener, err = metrics.Listen(r.metrics); err != nil {
			return err
		}
		defer listener.Close()
	}
	table, err := sockops.Open(r.instance, r.most)
	switch {
	case errors.Is(err, sockops.ErrTaken):
		return fmt.Errorf("an instance %s runs already: end that one first, or write --instance and another name; \"headgate collective show --instance %[1]s\" tells what it does", r.instance)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("collective run loads eBPF programs: %w", needRoot(err))
	case err != nil:
		return err
	}
	defer table.Close()
	before, err := table.Refused()
	if err != nil {
		return err
	}
	refused := refusals{before: before}
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
	if listener != nil {
		defer metrics.Serve(listener, metrics.Collective(server.States))()
	}
	room := table.Size()
	if room != r.most {
		a.note("the table that a killed program left has room for %s: end this one and start it again for --connections %d", count(room, "connection"), r.most)
	}
	what := "the end lifts all caps"
	if r.dry {
		what = "with --dry-run nothing is capped: caps are what it would do"
	}
	a.note("watching %s; %s", count(len(r.policies), "set"), what)
	for _, s := range h.State() {
		if s.Waiting {
			a.note("set %s waits: its cgroup or unit is not there yet", s.Set)
		}
	}
	return h.Run(ctx, r.interval, func(states []host.State) error {
		if all, err := table.Refused(); err == nil {
			if n, news := refused.count(all); news {
				a.note("left alone: %s, because there is room for %d (--connections)", count(int(n), "connection"), room)
			}
		}
		if r.output == "json" {
			return json.NewEncoder(a.out).Encode(states)
		}
		return a.collectiveLines(states)
	})
}

// partText is what its part is made of: what it needs, or its weight.
func partText(c host.ConnectionState) string {
	if c.Weight > 0 {
		return fmt.Sprintf("weight %g", c.Weight)
	}
	return "needs " + rateOrDash(c.Needs)
}

// refusals are the connections that found the table full, which counts them since it was made:
// those that were counted before, and those that the user was told of.
type refusals struct{ before, told uint64 }

// count says how many there are by now, and whether that is news: there may be some every
// second, and the user is told again when they have doubled.
func (r *refusals) count(all uint64) (n uint64, news bool) {
	n = all - r.before
	if n == 0 || n < 2*r.told {
		return n, false
	}
	r.told = n
	return n, true
}

// collectiveLines prints each connection's line.
func (a *app) collectiveLines(states []host.State) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	now := time.Now().Format(time.TimeOnly)
	for _, s := range states {
		for _, c := range s.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\thas %v\t%v\tpace %s\twindow %s\n", now, setName(s), setState(s), c.Local, c.Remote,
				partText(c), view.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), rateOrDash(c.Pace), windowOrDash(c.Window))
		}
	}
	return w.Flush()
}
