package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"headgate/agent"
	"headgate/config"
	"headgate/controller"
	"headgate/metrics"
	"headgate/store/etcd"
)

const controllerDir = "/var/lib/headgate/controller"

// controllerRun is what was asked of "headgate controller".
type controllerRun struct {
	dir, name   string
	listen      string
	files       *[]string
	hosts       []string
	metrics     string
	level       slog.Level
	controllers config.Controllers
	etcd        outside
}

func controllerCommand(a *app) *cobra.Command {
	var r controllerRun
	c := &cobra.Command{
		Use:   "controller",
		Short: "Serve bandwidth to tenants: the API, and the agents of hosts",
		Long: `Controller serves the API over HTTPS, and the agents of hosts over mutual TLS. What
operators and tenants want is kept in an etcd that it runs by itself, in --data.

At its first start it makes an authority of its own and the first operator's token, and says
where that is and until when it is good; it makes another at a start at which no operator's is. It
listens on loopback until --listen says otherwise. With --listen 0.0.0.0 or :: it listens at all
addresses of the machine, and tells agents those of --certificate-for.

With -f and a document of kind: Controllers it is one of several, which find each other by that
file; each needs a folder that "headgate controller prepare" has made.

With --etcd it keeps everything in an etcd that is there already, and that others may use.
Several controllers need -f then, too, but no folders that are prepared.`,
		Example: `  headgate controller --data ./controller
  headgate controller --listen 10.0.0.1
  headgate controller --listen :: --certificate-for headgate.example.org
  headgate controller -f controllers.yaml --name c1
  headgate controller --etcd https://10.0.0.5:2379 --etcd-ca ca.pem --etcd-cert headgate.pem --etcd-key headgate.key --etcd-prefix /prod`,
		Args: cobra.NoArgs,
	}
	r.flags(c)
	c.Flags().StringVar(&r.listen, "listen", "127.0.0.1", "the `ADDRESS` to listen at, for callers and agents")
	c.Flags().StringSliceVar(&r.hosts, "certificate-for", nil, "more `NAMES` and addresses at which it is spoken to")
	c.Flags().StringVar(&r.metrics, "metrics", "", "serve metrics for Prometheus at this `ADDRESS`, such as 127.0.0.1:9421, under /metrics")
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "log what is at least this important")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.level = slog.Level(level)
		if err := r.read(a, c); err != nil {
			return err
		}
		if err := r.checkNames(); err != nil {
			return usageError{err, c.CommandPath()}
		}
		spareMemory()
		return a.controller(r)
	}
	c.AddCommand(controllerPrepareCommand(a), controllerBackupCommand(a), controllerRestoreCommand(a), controllerReplaceCommand(a), controllerStoreCommand())
	return c
}

// flags say which controller is meant, and where it is.
func (r *controllerRun) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.dir, "data", controllerDir, "keep everything in this `DIR`")
	c.Flags().StringVar(&r.name, "name", "c1", "which of the controllers of -f this is")
	r.files = fileFlag(c)
	r.etcd.flags(c)
}

// read finds out who the controllers are.
func (r *controllerRun) read(a *app, c *cobra.Command) error {
	if err := r.etcd.check(); err != nil {
		return usageError{err, c.CommandPath()}
	}
	r.controllers = config.Controllers{
		Members: []config.Member{{Name: r.name, Address: r.listen}},
		API:     config.APIPort, Agents: config.AgentsPort, Store: config.StorePort, Peers: config.PeersPort,
	}
	if len(*r.files) == 0 {
		if err := r.checkAddresses(); err != nil {
			return usageError{fmt.Errorf("--listen: %w", err), c.CommandPath()}
		}
		return nil
	}
	set, err := read(*r.files, a.in)
	if err != nil {
		return err
	}
	if len(set.Controllers) != 1 {
		return config.Mistakes{{File: (*r.files)[0], Message: "write one document of kind: Controllers in it"}}
	}
	r.controllers = set.Controllers[0]
	if err := r.checkAddresses(); err != nil {
		return r.mistake(err)
	}
	for _, m := range r.controllers.Members {
		if m.Name == r.name {
			r.listen = m.Address
			return nil
		}
	}
	return usageError{fmt.Errorf("--name %s is none of the controllers in %s", r.name, r.controllers.File), c.CommandPath()}
}

func (a *app) controller(r controllerRun) (err error) {
	ctx, stop := interrupted()
	defer stop()
	slog.SetDefault(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: r.level, ReplaceAttr: withoutTime})))
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	var listener net.Listener
	if r.metrics != "" {
		if listener, err = metrics.Listen(r.metrics); err != nil {
			return err
		}
		defer listener.Close()
	}
	s, closeStore, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	c, err := controller.New(ctx, s, controller.Config{
		Name: r.name, Hosts: r.certified(), AgentsAt: r.agentsAt(), Others: r.othersAt(), Version: version,
		API:    net.JoinHostPort(r.listen, portText(r.controllers.API)),
		Agents: net.JoinHostPort(r.listen, portText(r.controllers.Agents)),
		Room:   r.room(), Metrics: listener, Burst: tuneBurst,
	})
	if err != nil {
		return err
	}
	if err := a.firstToken(ctx, s, r, c.Pin()); err != nil {
		return err
	}
	api, agents := c.Addresses()
	a.note("serving https://%s, and agents at %s; the authority is %s", api, agents, c.Pin())
	notify, _ := agent.Notifier()
	notify(fmt.Sprintf("READY=1\nSTATUS=serving https://%s, and agents at %s", api, agents))
	defer notify("STOPPING=1")
	if !r.etcd.asked() {
		return c.Run(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go r.follow(ctx, s, end)
	if err := c.Run(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); errors.Is(err, errBack) {
		return err
	}
	return nil
}

func controllerPrepareCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "prepare -f FILE",
		Short: "Make the folders of several controllers, with what lets them trust each other",
		Long: `Prepare makes a folder for each of the controllers of a file, with the store's authority
and certificates. Copy each to its machine, and start the controller there with --data.`,
		Example: `  headgate controller prepare -f controllers.yaml --to ./folders`,
		Args:    cobra.NoArgs,
	}
	files := fileFlag(c)
	to := c.Flags().String("to", "", "make the folders in this `DIR`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to == "" || len(*files) == 0 {
			return usageError{errors.New("write -f and a file, and --to and a directory"), c.CommandPath()}
		}
		r := controllerRun{files: files}
		set, err := read(*files, a.in)
		if err != nil {
			return err
		}
		if len(set.Controllers) != 1 {
			return config.Mistakes{{File: (*files)[0], Message: "write one document of kind: Controllers in it"}}
		}
		r.controllers = set.Controllers[0]
		if err := r.checkAddresses(); err != nil {
			return r.mistake(err)
		}
		var first etcd.Member
		for i, m := range r.controllers.Members {
			r.name, r.dir = m.Name, filepath.Join(*to, m.Name)
			member := r.member()
			if i == 0 {
				first = member
			} else if err := first.Copy(member.Dir); err != nil {
				return err
			}
			if err := member.Prepare(); err != nil {
				return err
			}
			a.note("%s: copy it to %s and start \"headgate controller -f %s --name %s --data DIR\" there", r.dir, m.Address, strings.Join(*files, " -f "), m.Name)
		}
		return nil
	}
	return c
}
