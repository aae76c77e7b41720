package config

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate.dev/headgate/fabric"
)

// relays parses the section relays: of a network.
func (d *networkDecoder) relays(n *node, key string) (r fabric.Relays) {
	d.fields(n, key, "the relays of a network", []field{
		{"agents", oneOrMore(d.decoder, &r.Agents, func(s string) ([]string, error) {
			s, err := relayHost(s)
			return []string{s}, err
		})},
		{"redirect", func(n *node, key string) {
			d.each(n, key, "a redirection", func(n *node, key string) { r.Redirect = append(r.Redirect, d.redirect(n, key)) })
		}},
	})
	d.needs(n, key, "agents", "no host may be a relay agent: write for example %s: [relay1, relay2], the names or addresses of the hosts on which agents run")
	return r
}

func (d *networkDecoder) redirect(n *node, key string) (r fabric.Redirect) {
	d.fields(n, key, "a redirection", []field{
		{"name", one(d.decoder, &r.Name, serverName)},
		{"from", oneOrMore(d.decoder, &r.From, prefix)},
		{"to", oneOrMore(d.decoder, &r.To, prefix)},
		{"ports", oneOrMore(d.decoder, &r.Ports, func(s string) ([]fabric.PortRange, error) {
			p, err := ports(s)
			return []fabric.PortRange{{First: p.From, Last: p.To}}, err
		})},
	})
	d.needs(n, key, "name", "the redirection has no %s: write for example %[1]s: bulk")
	return r
}

// relayHost parses the name or the address of a host.
func relayHost(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().String(), nil
	}
	return serverName(s)
}

// relays prints the section relays: of a network.
func relays(p *printer, r fabric.Relays) {
	if len(r.Agents) == 0 && len(r.Redirect) == 0 {
		return
	}
	p.line("relays:")
	p.line("  agents: [%s]", strings.Join(texts(r.Agents, quote), ", "))
	if len(r.Redirect) == 0 {
		return
	}
	p.line("  redirect:")
	for _, one := range r.Redirect {
		out := []string{"name: " + quote(one.Name)}
		prefixes := func(key string, all []netip.Prefix) {
			if len(all) > 0 {
				out = append(out, fmt.Sprintf("%s: [%s]", key, strings.Join(texts(all, func(a netip.Prefix) string { return quote(a.String()) }), ", ")))
			}
		}
		prefixes("from", one.From)
		prefixes("to", one.To)
		if len(one.Ports) > 0 {
			out = append(out, "ports: ["+strings.Join(texts(one.Ports, func(r fabric.PortRange) string {
				if r.First == r.Last {
					return fmt.Sprint(r.First)
				}
				return fmt.Sprintf("%d-%d", r.First, r.Last)
			}), ", ")+"]")
		}
		p.line("    - {%s}", strings.Join(out, ", "))
	}
}
