package switching

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/lab"
)

// ovs is a private Open vSwitch in the host: its programs are child processes in the host's namespace,
// its database and sockets are in their own folder, and its datapath is the one in user space, which
// needs no kernel module. It is independent of the machine's own Open vSwitch.
type ovs struct {
	dir      string
	host     *lab.Node
	programs []*program
}

// program is a program that runs until it is stopped.
type program struct {
	*lab.Cmd
	said bytes.Buffer
	gone chan struct{}
}

// schema is the database schema of Debian's package.
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovsPatience is the time limit for a program to start or exit on a busy machine.
const ovsPatience = 10 * time.Second

func openvSwitch(ctx context.Context, l *lab.Lab) (_ *built, err error) {
	if _, err := os.Stat(schema); err != nil {
		return nil, fmt.Errorf("cannot find Open vSwitch: install the package openvswitch-switch (%w)", err)
	}
	dir, err := os.MkdirTemp("", "headgate-ovs-")
	if err != nil {
		return nil, err
	}
	o := &ovs{dir: dir, host: l.Node(host)}
	b := &built{close: o.close}
	if err := o.start(ctx); err != nil {
		return b, fmt.Errorf("cannot set up Open vSwitch: %w", err)
	}
	for _, p := range o.programs {
		b.pids = append(b.pids, p.Process.Pid)
	}
	return b, settle(l)
}

func (o *ovs) start(ctx context.Context) error {
	db := o.path("conf.db")
	if out, err := o.command(ctx, "ovsdb-tool", "create", db, schema).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot create its database: %w: %s", err, out)
	}
	const quiet = "-vconsole:warn"
	if err := o.run(ctx, o.path("db.sock"), "ovsdb-server", db, "--remote=p"+o.remote(), "--unixctl="+o.path("db.ctl"), quiet); err != nil {
		return err
	}
	if err := o.vsctl(ctx, "--no-wait", "init"); err != nil {
		return err
	}
	if err := o.run(ctx, o.path("switch.ctl"), "ovs-vswitchd", o.remote(), "--unixctl="+o.path("switch.ctl"), quiet); err != nil {
		return err
	}
	args := []string{"add-br", bridgeName, "--", "set", "bridge", bridgeName, "datapath_type=netdev", "fail_mode=standalone"}
	for _, m := range machines {
		args = append(args, "--", "add-port", bridgeName, m)
	}
	return o.vsctl(ctx, args...)
}

func (o *ovs) path(name string) string { return filepath.Join(o.dir, name) }

// remote returns the database's socket, in Open vSwitch's syntax.
func (o *ovs) remote() string { return "unix:" + o.path("db.sock") }

// command returns a command in the host that keeps its files in this folder.
func (o *ovs) command(ctx context.Context, name string, args ...string) *lab.Cmd {
	c := o.host.Command(ctx, name, args...)
	c.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_SYSCONFDIR="+o.dir)
	c.Dir = o.dir
	return c
}

// vsctl changes the switch, and returns when the change is complete.
func (o *ovs) vsctl(ctx context.Context, args ...string) error {
	args = append([]string{"--db=" + o.remote(), fmt.Sprintf("--timeout=%.0f", ovsPatience.Seconds())}, args...)
	if out, err := o.command(ctx, "ovs-vsctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ovs-vsctl %s: %w: %s", strings.Join(args[2:], " "), err, out)
	}
	return nil
}

// run starts a program and returns when it has created its socket.
func (o *ovs) run(ctx context.Context, socket, name string, args ...string) error {
	p := &program{Cmd: o.command(ctx, name, args...), gone: make(chan struct{})}
	p.Stdout, p.Stderr = &p.said, &p.said
	if err := p.Start(); err != nil {
		return err
	}
	o.programs = append(o.programs, p)
	go func() {
		_ = p.Wait() // it is terminated by a signal
		close(p.gone)
	}()
	give := time.NewTimer(ovsPatience)
	defer give.Stop()
	for {
		if _, err := os.Stat(socket); err == nil {
			return nil
		}
		select {
		case <-p.gone:
			return errors.Join(fmt.Errorf("%s has exited: %s", name, p.said.String()), ctx.Err())
		case <-give.C:
			return fmt.Errorf("%s has not created %s within %v", name, socket, ovsPatience)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// close stops the programs, the last first, and removes their files.
func (o *ovs) close() error {
	var errs []error
	for i := len(o.programs) - 1; i >= 0; i-- {
		p := o.programs[i]
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			_ = p.Process.Signal(signal) // it may have exited
			select {
			case <-p.gone:
			case <-time.After(ovsPatience / 2):
				continue
			}
			break
		}
		select {
		case <-p.gone:
		default:
			errs = append(errs, fmt.Errorf("process %d (%s) does not exit", p.Process.Pid, p.Path))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(o.dir))...)
}
