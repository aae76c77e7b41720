package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/controller/circuits"
	controllerservice "headgate.dev/headgate/controller/service"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
)

const controllerDir = "/var/lib/headgate/controller"

// controllerOptions has the options of "headgate controller".
type controllerOptions struct {
	controllerservice.Options
	files *[]string
	level slog.Level
	etcd  externalEtcd
}

func controllerCommand(a *app) *cobra.Command {
	var r controllerOptions
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller: the HTTPS API, and the service for agents",
		Long: `Controller serves the API over HTTPS, and the agents of hosts over mutual TLS. It stores
the desired state of operators and tenants in an etcd that it runs itself, in --data.

At its first start it creates a certificate authority and the first operator token, and
prints the token's file and expiry. At any later start at which no operator token is valid
it creates another one. It listens on loopback unless --listen is set. With --listen
0.0.0.0 or :: it listens on all addresses of the machine, and announces the names of
--certificate-for to agents.

It accepts OpenFlow 1.3 switches where the configuration of the network says ("headgate
network apply"), and the leader of the controllers connects them to one network, which
"headgate network show" prints. Each switch should connect to all controllers. --openflow
adds a listener of this controller alone, which needs no configuration. It has no TLS:
whoever reaches the address can pose as a switch, so it must be one that only switches
reach.

With -f and a document of kind: Controllers it is one of several controllers, which find
each other by that file. Each needs a data directory made by "headgate controller
prepare".

With --etcd it stores everything in an existing etcd, which other programs may use too.
Several controllers then need -f as well, but no prepared data directories.`,
		Example: `  headgate controller --data ./controller
  headgate controller --listen 10.0.0.1
  headgate controller --listen :: --certificate-for headgate.example.org
  headgate controller --listen 10.0.0.1 --advertise gw.example.org:18421
  headgate controller --openflow 10.9.0.1:6653
  headgate controller -f controllers.yaml --name c1
  headgate controller --etcd https://10.0.0.5:2379 --etcd-ca ca.pem --etcd-cert headgate.pem --etcd-key headgate.key --etcd-prefix /prod`,
		Args: cobra.NoArgs,
	}
	r.flags(c)
	c.Flags().StringVar(&r.Listen, "listen", "127.0.0.1", "the `ADDRESS` to listen on, for API clients and agents")
	c.Flags().StringSliceVar(&r.Hosts, "certificate-for", nil, "additional `NAMES` and addresses of the controller, for its certificate")
	c.Flags().StringSliceVar(&r.Advertise, "advertise", nil, "the `NAMES` or addresses at which agents reach this controller, if it is not that of --listen: a public address, or with a port that is forwarded to 8421. They are in its certificate")
	c.Flags().StringVar(&r.OpenFlow, "openflow", "", "accept OpenFlow switches at this `ADDRESS`, such as 10.9.0.1:6653, without authentication")
	r.Scheme = cycle.DefaultScheme
	c.Flags().Var(enumFlag{&r.Scheme, cycle.SchemeNames}, "reservation-scheme", "how bandwidth that reservations leave unused is lent; all but adaptive are for comparisons")
	completeFlag(c, "reservation-scheme", oneOf(cycle.SchemeNames...))
	c.Flags().DurationVar(&r.Cycle, "reservation-cycle", circuits.DefaultInterval, fmt.Sprintf("how often limits follow what reservations use, %v to %v", circuits.LeastInterval, circuits.MostInterval))
	c.Flags().StringVar(&r.Metrics, "metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9421, under /metrics")
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "minimum level of log messages")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.level = slog.Level(level)
		if err := r.read(a, c); err != nil {
			return err
		}
		if err := errors.Join(r.CheckNames(), r.CheckAdvertised(), circuits.CheckInterval(r.Cycle)); err != nil {
			return usageError{err, c.CommandPath()}
		}
		controllerservice.SpareMemory()
		return a.controller(r)
	}
	c.AddCommand(controllerPrepareCommand(a), controllerBackupCommand(a), controllerRestoreCommand(a), controllerPinCommand(a), controllerConfirmCommand(a), controllerTakeBackCommand(a), controllerReplaceCommand(a), controllerStoreCommand())
	return c
}

// flags adds the flags that select a controller and its data directory.
func (r *controllerOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.Dir, "data", controllerDir, "the data `DIR`")
	c.Flags().StringVar(&r.Name, "name", "c1", "the name of this controller in the file of -f")
	r.files = fileFlag(c)
	r.etcd.flags(c)
}

// configError returns err as an error in the document of kind: Controllers.
func (r *controllerOptions) configError(err error) error {
	return config.Errors{{File: r.Controllers.File, Line: r.Controllers.Line, Message: err.Error()}}
}

// read validates the flags and reads the list of controllers.
func (r *controllerOptions) read(a *app, c *cobra.Command) error {
	if err := r.etcd.check(); err != nil {
		return usageError{err, c.CommandPath()}
	}
	if r.etcd.configured() {
		r.External = &store.Endpoint{} // readEndpoint reads the files of the flags
	}
	r.Controllers = config.Controllers{
		Members: []config.Member{{Name: r.Name, Address: r.Listen}},
		API:     config.APIPort, Agents: config.AgentsPort, Store: config.StorePort, Peers: config.PeersPort,
	}
	if len(*r.files) == 0 {
		if err := r.CheckAddresses(); err != nil {
			return usageError{fmt.Errorf("--listen: %w", err), c.CommandPath()}
		}
		return nil
	}
	set, err := read(*r.files, a.in)
	if err != nil {
		return err
	}
	if r.Controllers, err = onlyControllers(*r.files, set); err != nil {
		return err
	}
	if err := r.CheckAddresses(); err != nil {
		return r.configError(err)
	}
	for _, m := range r.Controllers.Members {
		if m.Name == r.Name {
			r.Listen = m.Address
			return nil
		}
	}
	return usageError{fmt.Errorf("--name %s is not a controller in %s", r.Name, r.Controllers.File), c.CommandPath()}
}

func onlyControllers(files []string, set config.Set) (config.Controllers, error) {
	return only("Controllers", files, set.Controllers, func(c config.Controllers) (string, int) { return c.File, c.Line })
}

// readEndpoint sets the endpoint of an external etcd.
func (r *controllerOptions) readEndpoint() (err error) {
	if r.etcd.configured() {
		*r.External, err = r.etcd.endpoint()
	}
	return err
}

func (a *app) controller(r controllerOptions) error {
	ctx, stop := interrupted()
	defer stop()
	slog.SetDefault(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: r.level, ReplaceAttr: dropTimeInJournal})))
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := r.readEndpoint(); err != nil {
		return err
	}
	r.StoreCommand, r.Version, r.BucketSize = []string{self, "controller", "store"}, version, tuneBurst
	r.OnToken = func(t controllerservice.NewToken) {
		a.note("operator token created in %s: headgate login %s --pin %s --token-file %[1]s", t.File, t.URL, t.Pin)
		a.note("the token expires at %s: create another one before, with \"headgate token create NAME --role operator\"", t.Expires.Local().Format(time.DateTime))
	}
	r.OnReady = func(api, agents, pin string) {
		a.note("serving https://%s, agents at %s; the authority is %s to clients and agents, certificate pin %[3]s", api, agents, pin)
	}
	err = controllerservice.Run(ctx, r.Options)
	if errors.Is(err, etcd.ErrNoAuthority) {
		return r.withPrepareRemedy(fmt.Errorf("%s: %w", r.Dir, err))
	}
	return r.etcd.withRestoreRemedy(err)
}

// controllerStoreCommand is the command of the child process that runs the controller's own etcd.
func controllerStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "store FILE", Short: "Run the controller's store", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			controllerservice.SpareMemory()
			return etcd.RunChild(args[0])
		},
	}
}

func controllerPrepareCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "prepare -f FILE",
		Short: "Create the data directories of several controllers, with their certificates",
		Long: `Prepare creates a data directory for each controller of a file, with the store's
certificate authority and certificates. Copy each directory to its machine, and start the
controller there with --data.`,
		Example: `  headgate controller prepare -f controllers.yaml --to ./folders`,
		Args:    cobra.NoArgs,
	}
	files := fileFlag(c)
	to := c.Flags().String("to", "", "create the data directories in this `DIR`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to == "" || len(*files) == 0 {
			return usageError{errors.New("-f or --to is missing: set -f to a file and --to to a directory"), c.CommandPath()}
		}
		r := controllerOptions{files: files}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if r.Controllers, err = onlyControllers(*files, set); err != nil {
			return err
		}
		if err := r.CheckAddresses(); err != nil {
			return r.configError(err)
		}
		var first etcd.Member
		for i, m := range r.Controllers.Members {
			r.Name, r.Dir = m.Name, filepath.Join(*to, m.Name)
			member := r.Member()
			if i == 0 {
				first = member
			} else if err := first.Copy(member.Dir); err != nil {
				return err
			}
			if err := member.Prepare(); err != nil {
				return err
			}
			a.note("%s: copy it to %s and start \"headgate controller -f %s --name %s --data DIR\" there", r.Dir, m.Address, strings.Join(*files, " -f "), m.Name)
		}
		return nil
	}
	return c
}
