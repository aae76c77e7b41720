package lab

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ovs is the Open vSwitch of a lab: an ovsdb-server and an ovs-vswitchd in a namespace of their own,
// with their files in a directory of their own. It is independent of the machine's Open vSwitch. Each
// switch is a bridge in it, with the datapath in user space (datapath_type=netdev), which needs no
// kernel module.
type ovs struct {
	node *Node
	dir  string
	// The programs; nil in an attached lab.
	server, vswitchd *daemon
}

// schema is the database schema of Debian's package (openvswitch-switch).
const schema = "/usr/share/openvswitch/vswitch.ovsschema"

// findOpenVSwitch returns an error if the lab needs Open vSwitch, and it is not installed.
func (t *Topology) findOpenVSwitch(schema string) error {
	if len(t.Switches) == 0 {
		return nil
	}
	_, err := os.Stat(schema)
	for _, name := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"} {
		if _, missing := os.Stat(ovsProgram(name)); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return configErrorf("the lab has switches, and Open vSwitch is not installed (%w): apt-get install openvswitch-switch", err)
	}
	return nil
}

// ovsProgram returns the path of a program of Open vSwitch; users' PATH often lacks /usr/sbin.
func ovsProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return filepath.Join("/usr/sbin", name)
}

// remote returns the database's socket, in Open vSwitch's notation.
func (o *ovs) remote() string { return "unix:" + filepath.Join(o.dir, "db.sock") }

// command returns a command in the switches' namespace that uses this Open vSwitch: ovs-ofctl, ovs-vsctl
// and ovs-appctl look for sockets in OVS_RUNDIR.
func (o *ovs) command(ctx context.Context, name string, args ...string) *Cmd {
	c := o.node.Command(ctx, name, args...)
	c.Env = append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_SYSCONFDIR="+o.dir, "OVS_DB="+o.remote())
	return c
}

// run runs a program of Open vSwitch and returns its output.
func (o *ovs) run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := o.command(ctx, ovsProgram(name), args...).CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args[:min(len(args), 8)], " "), err, text)
	}
	return string(out), nil
}

// vsctl changes or reads the database. Unless args begin with --no-wait, it returns after ovs-vswitchd
// has applied the change.
func (o *ovs) vsctl(ctx context.Context, args ...string) (string, error) {
	return o.run(ctx, "ovs-vsctl", append([]string{"--retry", fmt.Sprintf("--timeout=%.0f", patience.Seconds())}, args...)...)
}

// daemon is a running program of Open vSwitch. Its output is in a log file of its directory.
type daemon struct {
	*Cmd
	done chan struct{} // closed when it has exited
}

// start starts a program that stays, and returns when it has written its pidfile.
func (o *ovs) start(ctx context.Context, name string, args ...string) (*daemon, error) {
	pidfile := filepath.Join(o.dir, name+".pid")
	if err := os.Remove(pidfile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	args = append(args, "--pidfile", "--log-file", "-vconsole:off", "-vsyslog:off")
	// It outlives ctx, and this process if the lab is left.
	d := &daemon{o.command(context.WithoutCancel(ctx), ovsProgram(name), args...), make(chan struct{})}
	d.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's Ctrl-C does not reach it
	d.Dir = o.dir
	if err := d.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = d.Wait() // it is terminated by a signal
		close(d.done)
	}()
	limit := time.After(patience)
	for {
		if _, err := os.Stat(pidfile); err == nil {
			return d, nil
		}
		select {
		case <-d.done:
			return nil, fmt.Errorf("%s has exited: %s", name, o.lastLog(name))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit:
			return nil, fmt.Errorf("%s did not start within %v: %s", name, patience, o.lastLog(name))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// lastLog returns the last line of a program's log.
func (o *ovs) lastLog(name string) string {
	b, _ := os.ReadFile(filepath.Join(o.dir, name+".log"))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return cmp.Or(lines[len(lines)-1], "its log is empty")
}

// kill kills the program and returns when it has exited.
func (d *daemon) kill() error {
	err := d.Process.Kill()
	<-d.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// pids returns the pids of the running programs.
func (o *ovs) pids() (out []int) {
	if o == nil {
		return nil
	}
	for _, d := range []*daemon{o.server, o.vswitchd} {
		if d != nil {
			out = append(out, d.Process.Pid)
		}
	}
	return out
}

// create creates the database with the bridges and their ports, and starts both programs. Controllers
// are set later.
func (o *ovs) create(ctx context.Context, t *Topology) (err error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return permitted(err)
	}
	db := filepath.Join(o.dir, "conf.db")
	if _, err := o.run(ctx, "ovsdb-tool", "create", db, schema); err != nil {
		return err
	}
	if o.server, err = o.start(ctx, "ovsdb-server", db, "--remote=p"+o.remote()); err != nil {
		return err
	}
	args := []string{"--no-wait", "--", "init",
		// Flows match the VLAN tag of a host after another tag. By default Open vSwitch looks at one.
		"--", "set", "open_vswitch", ".", "other_config:vlan-limit=2",
		// Without it Open vSwitch would remove the qdiscs of links.
		"--", "--id=@leave", "create", "qos", "type=linux-noop"}
	ports, is := t.ports(), t.isSwitch()
	for i, s := range t.Switches {
		args = append(args,
			"--", "add-br", s.Name, "--", "set", "bridge", s.Name, "datapath_type=netdev",
			"fail_mode="+string(cmp.Or(s.FailMode, Secure)), fmt.Sprintf("rstp_enable=%t", s.RSTP),
			"other_config:datapath-id="+formatID(t.datapathID(i)),
			// Controllers are reached by management links only.
			"other_config:disable-in-band=true",
		)
		if len(s.Protocols) > 0 {
			args = append(args, "protocols="+strings.Join(s.Protocols, ","))
		}
		for _, p := range ports[s.Name] {
			args = append(args, "--", "add-port", s.Name, p.Device, "--", "set", "interface", p.Device, fmt.Sprintf("ofport_request=%d", p.Number),
				"--", "set", "port", p.Device, "qos=@leave")
			if s.RSTP && !is(p.Peer) {
				// RSTP would otherwise wait for 3 s whether the node is a bridge.
				args = append(args, "other_config:rstp-port-admin-edge=true")
			}
		}
	}
	if _, err := o.vsctl(ctx, args...); err != nil {
		return err
	}
	return o.startVswitchd(ctx, t)
}

// startVswitchd starts ovs-vswitchd, and returns when all ports have their numbers.
func (o *ovs) startVswitchd(ctx context.Context, t *Topology) (err error) {
	if o.vswitchd, err = o.start(ctx, "ovs-vswitchd", o.remote()); err != nil {
		return err
	}
	// It answers a change after it has applied everything.
	if _, err := o.vsctl(ctx, "set", "open_vswitch", ".", fmt.Sprintf("external_ids:process=%d", o.vswitchd.Process.Pid)); err != nil {
		return fmt.Errorf("%w: %s", err, o.lastLog("ovs-vswitchd"))
	}
	numbers, err := o.read(ctx, "interface", "name", "ofport")
	if err != nil {
		return err
	}
	for name, ports := range t.ports() {
		for _, p := range ports {
			if got := numbers[p.Device]; got != strconv.Itoa(int(p.Number)) {
				return fmt.Errorf("port %s of switch %s has the number %q, want %d: %s", p.Device, name, got, p.Number, o.lastLog("ovs-vswitchd"))
			}
		}
	}
	return o.enlargeQueues(ctx, t)
}

// read returns two columns of a table of the database: a name, and the value of each.
func (o *ovs) read(ctx context.Context, table, key, value string) (map[string]string, error) {
	out, err := o.vsctl(ctx, "--format=csv", "--no-headings", "--columns="+key+","+value, "list", table)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot parse the output of ovs-vsctl list %s: %w", table, err)
	}
	values := map[string]string{}
	for _, r := range rows {
		if len(r) == 2 {
			values[r[0]] = r[1]
		}
	}
	return values, nil
}
