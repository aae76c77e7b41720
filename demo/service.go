package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// service starts the controller and the hosts' agents, creates the tenants, and configures the
// hosts, by commands and the API as an operator does.
func (p *play) service(ctx context.Context) error {
	for _, step := range []struct {
		status string
		do     func(*play, context.Context) error
	}{
		{"starting the controller", func(p *play, ctx context.Context) error { return p.startController(ctx) }},
		{"creating tenants and hosts", (*play).makeTenants},
		{"joining three hosts", (*play).joinHosts},
		{"configuring the hosts' links", (*play).configureHosts},
		{"logging the tenants in", (*play).loginTenants},
	} {
		p.stage.status(step.status)
		if err := step.do(p, ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeTenants creates the tenants and the hosts.
func (p *play) makeTenants(ctx context.Context) error {
	p.stage.say("", "Create two tenants and three hosts:", "")
	for _, tenant := range scenario.Tenants {
		if _, err := p.headgate(ctx, scenario.Controller, "tenant", "set", tenant, "--server", "default"); err != nil {
			return err
		}
	}
	for _, host := range scenario.Hosts {
		if _, err := p.headgate(ctx, scenario.Controller, "host", "set", host, "--server", "default"); err != nil {
			return err
		}
	}
	return nil
}

// request shows and sends a request of the operator.
func (p *play) request(ctx context.Context, method, path, body string) error {
	p.stage.say("  > " + method + " " + path + " " + body)
	return p.operator.must(ctx, method, path, body)
}

// joinHosts joins the hosts and starts their agents. Only the commands of the first are shown.
func (p *play) joinHosts(ctx context.Context) error {
	for i, host := range scenario.Hosts {
		run := p.headgate
		if i == 0 {
			p.stage.say("", "Each host joins with a token that is valid once, and runs an agent:", "")
		} else {
			run = p.runSilently
		}
		agent, err := p.join(ctx, host, run)
		if err != nil {
			return err
		}
		p.agents[i] = agent
		if i == 0 {
			p.showCommand(host, agentArguments(host), " &")
			p.stage.say("  ... and the same on " + strings.Join(scenario.Hosts[1:], " and "))
		}
	}
	return nil
}

// configureHosts applies a configuration to each host, and delegates its groups to the tenants.
func (p *play) configureHosts(ctx context.Context) error {
	for i, host := range scenario.Hosts {
		file := host + ".yaml"
		if err := p.writeFile(file, p.scenario.Config(host, scenario.Export)); err != nil {
			return err
		}
		switch i {
		case 0:
			p.stage.say("", "The configuration of host1, in "+file+":", "")
			for line := range strings.Lines(p.scenario.Config(host, scenario.Export)) {
				p.stage.say("  " + strings.TrimRight(line, "\n"))
			}
			p.stage.say("")
		case 1:
			p.stage.say("", "The others have a limit of "+scenario.SmallLimit.String()+": half of it for media, 45% for shop.", "")
		}
		said, err := p.headgate(ctx, scenario.Controller, "apply", "--server", "default", "--host", host, "-f", file)
		if err != nil {
			return err
		}
		if i == 0 {
			p.stage.say(indented(said)...)
		}
	}
	p.stage.say("", "Delegate the groups to the tenants, who divide them further (by the API):", "")
	rest := 0
	for _, g := range p.scenario.Delegations() {
		ask := p.request
		if g.Host != scenario.Hosts[0] || g.Direction != "out" {
			ask, rest = p.operator.must, rest+1
		}
		if err := ask(ctx, http.MethodPatch, groupURL(g.Host, g.Direction, g.Group), `{"tenant":"`+g.Tenant+`"}`); err != nil {
			return err
		}
	}
	p.stage.say(fmt.Sprintf("  ... and %d more, for direction in and on the other hosts", rest))
	for i, host := range scenario.Hosts {
		if err := p.agents[i].await(ctx, "the groups are not in force", func() bool {
			state, err := p.read(host)
			return err == nil && state.Plan.Out != nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// loginTenants creates a token for each tenant, and shows that a tenant cannot access another tenant's
// groups.
func (p *play) loginTenants(ctx context.Context) error {
	p.stage.say("", "Each tenant gets a token of its own:", "")
	callers := map[string]*client{}
	for _, tenant := range scenario.Tenants {
		token, err := p.headgate(ctx, scenario.Controller, "token", "create", tenant+"-program", "--server", "default", "--role", "tenant", "--tenant", tenant)
		if err != nil {
			return err
		}
		file := tenant + ".token"
		if err := p.writeFile(file, token+"\n"); err != nil {
			return err
		}
		if _, err := p.headgate(ctx, scenario.Controller, "login", p.url, "--profile", tenant, "--pin", p.pin, "--token-file", file); err != nil {
			return err
		}
		callers[tenant] = p.caller(scenario.Hosts[0], token)
	}
	p.program = &tenantProgram{client: callers["shop"], say: p.stage.say}
	p.stage.say("", "Media can neither read nor change shop's groups:", "")
	stranger := &tenantProgram{client: callers["media"], say: p.stage.say}
	others := groupURL(scenario.Hosts[0], "out", p.scenario.Path("shop", "export"))
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPatch: `{"guarantee":"1Mbit"}`} {
		r, err := stranger.asks(ctx, method, others, body)
		if err != nil {
			return err
		}
		if r.Status != http.StatusNotFound {
			return fmt.Errorf("a tenant's request for another tenant's group got %s, want 404", r.text())
		}
	}
	p.stranger = stranger.Requests
	return nil
}

// operatorChanges applies a configuration with another guarantee for export.
func (p *play) operatorChanges(ctx context.Context, export unit.Rate) error {
	host := scenario.Hosts[0]
	file := host + ".yaml"
	if err := p.writeFile(file, p.scenario.Config(host, export)); err != nil {
		return err
	}
	p.stage.say("  The operator changes it instead:")
	said, err := p.headgate(ctx, scenario.Controller, "apply", "--server", "default", "--host", host, "-f", file)
	p.stage.say(indented(said)...)
	if err != nil {
		return err
	}
	return p.inForce(ctx, host, p.scenario.Path("shop", "export"), export)
}

// assignDownload assigns the download's connection to another group, as its tenant.
func (p *play) assignDownload(ctx context.Context) error {
	from, to, err := p.session.Conn(scenario.Download)
	if err != nil {
		return err
	}
	_, err = p.headgate(ctx, scenario.Controller, "assign", p.scenario.Path("shop", "export"), "--server", "shop", "--host", scenario.Hosts[0], "--dev", scenario.Dev, "--conn", fmt.Sprintf("tcp %v %v", from, to))
	return err
}

// inForce waits until a group's guarantee is in force in the kernel of a host.
func (p *play) inForce(ctx context.Context, host, path string, guarantee unit.Rate) error {
	return p.agents[0].await(ctx, "the new guarantee is not in force", func() bool {
		state, err := p.read(host)
		return err == nil && len(state.Drift) == 0 && guaranteed(state.Plan.Out, path) == guarantee
	})
}

// guaranteed returns the guarantee of a group in a tree, 0 if the tree has no such group.
func guaranteed(t *group.Tree, path string) unit.Rate {
	if t == nil {
		return 0
	}
	i, err := t.Find(path)
	if err != nil {
		return 0
	}
	return t.Nodes[i].Guarantee
}
