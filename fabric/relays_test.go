package fabric

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

func redirectPrefixes(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func connection(client, server string) Connection {
	return Connection{netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)}
}

// Selectors select whatever a rule matches, and a rule without prefixes matches both families.
func TestRedirect(t *testing.T) {
	bulk := Redirect{From: redirectPrefixes("10.1.0.0/16", "2001:db8:1::/48"), To: redirectPrefixes("10.2.0.0/16", "2001:db8:2::/48"), Ports: []PortRange{{443, 443}, {5001, 5100}}}
	few := Redirect{To: redirectPrefixes("10.2.0.0/16"), Ports: []PortRange{{80, 81}, {81, 82}}}
	for _, c := range []struct {
		rule Redirect
		conn Connection
		want bool
	}{
		{bulk, connection("10.1.2.3:40000", "10.2.0.1:443"), true},
		{bulk, connection("10.1.2.3:40000", "10.2.0.1:5100"), true},
		{bulk, connection("10.1.2.3:443", "10.2.0.1:80"), false},
		{bulk, connection("10.2.0.1:443", "10.1.2.3:443"), false},
		{bulk, connection("[2001:db8:1::1]:40000", "[2001:db8:2::1]:5001"), true},
		{few, connection("192.0.2.1:1", "10.2.0.1:82"), true},
		{few, connection("192.0.2.1:1", "10.2.0.1:83"), false},
		{Redirect{}, connection("[2001:db8:1::1]:40000", "[2001:db8:2::1]:5001"), true},
	} {
		if got := c.rule.Matches(c.conn); got != c.want {
			t.Errorf("%+v matches %v: %v", c.rule, c.conn, got)
		}
		selected := false
		for _, s := range c.rule.Selectors(everywhere) {
			in := func(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }
			selected = selected || in(s.From, c.conn.Client.Addr()) && in(s.To, c.conn.Server.Addr()) && (s.Ports == PortRange{} || s.Ports.First <= c.conn.Server.Port() && c.conn.Server.Port() <= s.Ports.Last)
		}
		if selected != c.want {
			t.Errorf("a selector of %+v selects %v: %v", c.rule, c.conn, selected)
		}
	}
	for _, c := range []struct {
		to, destinations, want []netip.Prefix
	}{
		{nil, redirectPrefixes("10.2.0.0/24"), redirectPrefixes("10.2.0.0/24")},
		{few.To, redirectPrefixes("10.2.0.0/24", "10.3.0.0/24"), redirectPrefixes("10.2.0.0/24")},
		{few.To, redirectPrefixes("10.0.0.0/8"), few.To},
		{few.To, redirectPrefixes("2001:db8::/32"), nil},
		{redirectPrefixes("10.0.0.0/8", "10.2.0.0/16"), redirectPrefixes("10.2.0.0/24"), redirectPrefixes("10.2.0.0/24")},
	} {
		var got []netip.Prefix
		for _, s := range (Redirect{To: c.to}).Selectors(c.destinations) {
			got = append(got, s.To)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("to %v of %v: selected %v, want %v", c.to, c.destinations, got, c.want)
		}
	}
}

// Agents are hosts by name or address, and hosts that can begin connections are those with an address in a rule.
func TestRelaysHosts(t *testing.T) {
	h := Host{Name: "relay1", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.10")}}
	for _, c := range []struct {
		relays      Relays
		agent, from bool
	}{
		{Relays{}, false, false},
		{Relays{Agents: []string{"relay1"}}, true, false},
		{Relays{Agents: []string{"relay2", "10.0.0.10"}, Redirect: []Redirect{{From: redirectPrefixes("10.1.0.0/16")}, {From: redirectPrefixes("10.0.0.0/24")}}}, true, true},
		{Relays{Agents: []string{"10.0.0.1"}, Redirect: []Redirect{{From: redirectPrefixes("10.1.0.0/16")}}}, false, false},
		{Relays{Redirect: []Redirect{{}}}, false, true},
	} {
		if agent, from := c.relays.IsAgent(h), slices.ContainsFunc(c.relays.Redirect, func(r Redirect) bool { return r.CanBegin(h) }); agent != c.agent || from != c.from {
			t.Errorf("%+v: the host is an agent: %v, begins connections: %v", c.relays, agent, from)
		}
	}
}
