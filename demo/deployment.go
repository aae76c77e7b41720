package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/lab"
)

// deployment is a network with a controller, and the processes of this program in its nodes.
type deployment struct {
	Options
	stage stage
	lab   *lab.Lab
	dir   string // the directory of all files of the demo

	// The service: its addresses, the client of its operator, and its processes.
	address, url, pin string
	served            bool // also on this machine's loopback
	operator          *client
	processes         []*process
}

// create removes what killed demos left, introduces and creates a network, and makes the demo's directory.
func (d *deployment) create(ctx context.Context, t *lab.Topology, introduction []string, picture string, options ...lab.Option) (err error) {
	if _, err := d.sweep(false); err != nil {
		return err
	}
	d.stage.say("")
	d.stage.say(introduction...)
	d.stage.say("")
	d.stage.say(strings.Split(picture, "\n")...)
	if d.lab, err = lab.Up(ctx, t, options...); err != nil {
		return err
	}
	if d.dir, err = makeDir(t.Name); err != nil {
		return errors.Join(err, d.lab.Close())
	}
	return nil
}

// startController starts the controller in a node of its own, and logs the operator in.
func (d *deployment) startController(ctx context.Context) error {
	a, err := d.lab.Node(scenario.Controller).Addr(false)
	if err != nil {
		return err
	}
	d.address, d.url = a.String(), fmt.Sprintf("https://%v:%d", a, config.APIPort)
	d.stage.say("", "The commands run in "+d.dir+", which has all files.", "Start the controller, with an etcd of its own, and log its operator in:", "")
	args := []string{"controller", "--listen", d.address, "--data", scenario.Controller}
	if d.served {
		args = append(args, "--certificate-for", loopback)
	}
	d.showCommand(scenario.Controller, args, " &")
	c, err := d.start(ctx, scenario.Controller, scenario.Controller, args...)
	if err != nil {
		return err
	}
	if err := c.await(ctx, "the controller did not start", func() bool { return strings.Contains(c.output(), "serving https://") }); err != nil {
		return err
	}
	_, after, _ := strings.Cut(c.output(), "certificate pin ")
	d.pin, _, _ = strings.Cut(after, "\n")
	file := filepath.Join(scenario.Controller, "operator.token")
	token, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		return err
	}
	d.operator = d.caller(scenario.Controller, strings.TrimSpace(string(token)))
	_, err = d.headgate(ctx, scenario.Controller, "login", d.url, "--pin", d.pin, "--token-file", file)
	return err
}

// join joins a host with a token that is valid once, and starts its agent. Its commands go through run.
func (d *deployment) join(ctx context.Context, host string, run func(context.Context, string, ...string) (string, error)) (*process, error) {
	token, err := run(ctx, scenario.Controller, "token", "create", host, "--server", "default", "--role", "agent", "--host", host)
	if err != nil {
		return nil, err
	}
	file := host + ".token"
	if err := d.writeFile(file, token+"\n"); err != nil {
		return nil, err
	}
	if _, err := run(ctx, host, "agent", "join", d.url, "--host", host, "--token-file", file, "--pin", d.pin, "--dir", host); err != nil {
		return nil, err
	}
	return d.start(ctx, "agent on "+host, host, agentArguments(host)...)
}

// agentArguments are those of a host's agent. It has a socket of its own, because an agent of this machine may have the default one.
func agentArguments(host string) []string {
	return []string{"agent", "--dir", host, "--socket", filepath.Join(host, "agent.sock")}
}

// leave keeps the network and the processes in it when this process exits.
func (d *deployment) leave() error { return errors.Join(d.lab.Leave(), d.lab.Close()) }
