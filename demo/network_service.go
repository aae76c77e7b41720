package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/sleep"
)

// bare starts the service, and waits until the network connects its hosts.
func (p *networkPlay) bare(ctx context.Context) error {
	if err := p.startController(ctx); err != nil {
		return err
	}
	if err := p.describe(ctx); err != nil {
		return err
	}
	for i, host := range sites.Hosts {
		run := p.runSilently
		if i == 0 {
			p.stage.say("", "Hosts join the service with an agent each, which measures:", "")
			run = p.headgate
		}
		if err := p.reach(ctx, host, sites.Controller); err != nil {
			return err
		}
		if _, err := run(ctx, sites.Controller, "host", "set", host, "--server", "default"); err != nil {
			return err
		}
		if _, err := p.join(ctx, host, run); err != nil {
			return err
		}
		if i == 0 {
			p.showCommand(host, agentArguments(host), " &")
			p.stage.say("  ... and the same on " + strings.Join(sites.Hosts[1:], ", "))
		}
	}
	if err := p.startRelays(ctx); err != nil {
		return err
	}
	for _, ends := range [][2]string{{sites.App, sites.DB}, {sites.Files, sites.Store}, {sites.App, sites.Relay1}, {sites.Relay1, sites.Relay2}, {sites.DB, sites.Relay2}, {sites.Files, sites.Relay1}, {sites.Store, sites.Relay2}} {
		if err := p.reach(ctx, ends[0], ends[1]); err != nil {
			return err
		}
	}
	_, err := p.until(ctx, timeout, "the network has not all switches, links and relay agents", func(s networkState) bool {
		known := len(s.Relays) == 2
		for _, r := range s.Relays {
			known = known && (r.Name != p.relayName(sites.Relay1) || len(r.Exits) > 0)
		}
		return known && len(s.Switches) == len(sites.Switches) && len(s.Links) == 2*len(sites.Switches)
	})
	if err != nil {
		return err
	}
	p.stage.say("")
	if err := p.show(ctx, "network", "show", "links", "--server", "default"); err != nil {
		return err
	}
	out, err := p.lab.Node(sites.App).Command(ctx, "ping", "-q", "-c", "5", "-i", "0.2", p.addr(sites.DB)).CombinedOutput()
	if m := regexp.MustCompile(`= [\d.]+/([\d.]+)/`).FindSubmatch(out); err == nil && m != nil {
		p.stage.say("", fmt.Sprintf("  A ping from %s to %s takes %s ms.", sites.App, sites.DB, m[1]))
	}
	return err
}

// describe gives the controller the network's document, with further lines.
func (p *networkPlay) describe(ctx context.Context, more ...string) error {
	var missing error
	port := func(at, to string) uint32 {
		found, err := p.lab.Switch(at).Port(to)
		if err != nil {
			missing = err
		}
		return found.Number
	}
	if err := p.writeFile("network.yaml", p.network.Document(port, p.addr, more...)); err != nil || missing != nil {
		return errors.Join(err, missing)
	}
	_, err := p.headgate(ctx, sites.Controller, "network", "apply", "-f", "network.yaml", "--server", "default")
	return err
}

// startRelays starts the relay agents. The exit accepts streams at two ports: the network gives each a path of its own.
func (p *networkPlay) startRelays(ctx context.Context) error {
	if _, err := p.runSilently(ctx, sites.Relay1, "relay", "key", "relay.key"); err != nil {
		return err
	}
	p.stage.say("", "Relay agents announce themselves to the network:", "")
	for _, one := range []struct{ node, at, text string }{
		{sites.Relay2, "e2", fmt.Sprintf("accept: {listen: [\"%[1]s:%[2]d\", \"%[1]s:%[3]d\"], destinations: [%[4]s/32], keep_source: true}\n",
			p.addr(sites.Relay2), sites.FirstStream, sites.LastStream, p.addr(sites.Store))},
		{sites.Relay1, "w2", fmt.Sprintf("take: [{}]\nexits:\n  - address: %[1]s:%[2]d\n    destinations: [%[4]s/32]\n    paths: [{name: one, address: \"%[1]s:%[2]d\"}, {name: two, address: \"%[1]s:%[3]d\"}]\n",
			p.addr(sites.Relay2), sites.FirstStream, sites.LastStream, p.addr(sites.Store))},
	} {
		dev, err := p.lab.Node(one.node).Device(one.at)
		if err != nil {
			return err
		}
		file := one.node + ".yaml"
		if err := p.writeFile(file, fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\nnetwork: %s\n", p.relayName(one.node), filepath.Join(p.dir, "relay.key"), dev)+one.text); err != nil {
			return err
		}
		args := []string{"relay", "run", "-f", file}
		p.showCommand(one.node, args, " &")
		if _, err := p.start(ctx, "relay agent on "+one.node, one.node, args...); err != nil {
			return err
		}
	}
	return nil
}

// relayName is unique on the machine, as the names of agents' sockets must be.
func (p *networkPlay) relayName(node string) string {
	return node + "-" + strings.TrimPrefix(p.lab.Topology.Name, prefix+"-")
}

// addr is the address of a host. All hosts have one.
func (p *networkPlay) addr(host string) string {
	a, err := p.lab.Node(host).Addr(false)
	if err != nil {
		panic(err)
	}
	return a.String()
}

// reach waits until a host reaches another.
func (p *networkPlay) reach(ctx context.Context, from, to string) error {
	for deadline := time.Now().Add(timeout); ; {
		out, err := p.lab.Node(from).Command(ctx, "ping", "-c", "1", "-W", "1", p.addr(to)).CombinedOutput()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("%s does not reach %s after %v: %s", from, to, timeout, strings.TrimSpace(string(out)))
		}
		if !sleep.Until(ctx, time.Now().Add(100*time.Millisecond)) {
			return ctx.Err()
		}
	}
}

// show runs a command of the operator, and shows the command and its output.
func (p *networkPlay) show(ctx context.Context, args ...string) error {
	out, err := p.headgate(ctx, sites.Controller, args...)
	p.stage.say(indented(out)...)
	return err
}
