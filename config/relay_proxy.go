package config

import (
	"fmt"
	"net"
	"net/netip"

	"headgate.dev/headgate/relay"
)

// proxy parses a listener for applications that name their destinations, key being socks or http_proxy. One that other
// hosts reach without authentication is noted.
func (d *decoder) proxy(out *relay.Proxy, notes *[]Note) func(*node, string) {
	return func(n *node, key string) {
		d.fields(n, key, "a proxy", []field{
			{"listen", one(d, &out.Listen, LoopbackAddress)},
			{"users", one(d, &out.UsersFile, usersFile)},
		})
		d.needs(n, key, "listen", "%s is missing: write for example %[1]s: 127.0.0.1:1080")
		at := join(key, "listen")
		if a, err := netip.ParseAddrPort(out.Listen); err == nil && !a.Addr().IsLoopback() && out.UsersFile == "" && !d.broken[join(key, "users")] {
			*notes = append(*notes, Note{d.file, d.place(at, n.position).line, at, fmt.Sprintf(
				"%s is an open proxy: any host that reaches it can connect to all destinations that this host reaches, its own services included; write users, or listen on 127.0.0.1", a)})
		}
	}
}

// checkProxies reports proxies that cannot do anything.
func (d *decoder) checkProxies(n *node, p relay.Policy) {
	for _, one := range []struct {
		key string
		relay.Proxy
	}{{"socks", p.Socks}, {"http_proxy", p.HTTPProxy}} {
		if one.Listen != "" && len(p.Exits) == 0 && !d.broken["exits"] {
			d.invalid(n, one.key, "the agent has no exit, so that all connections would go direct: write exits")
		}
	}
	if p.Socks.Listen != "" && p.Socks.Listen == p.HTTPProxy.Listen {
		d.invalid(n, "http_proxy.listen", "%s is already the address of socks: write another port", p.Socks.Listen)
	}
}

// LoopbackAddress parses an address to listen on: IP:PORT, and PORT or :PORT, which is on 127.0.0.1.
func LoopbackAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = "", s
	}
	if host == "" {
		host = "127.0.0.1"
	}
	_, err = portNumber(port)
	if err == nil {
		_, err = netip.ParseAddr(host)
	}
	if err != nil {
		return "", fmt.Errorf("%q is not an address to listen on: write for example 127.0.0.1:1080, or 1080 for the same", s)
	}
	return net.JoinHostPort(host, port), nil
}

func usersFile(s string) (string, error) {
	if s == "" || s[0] != '/' {
		return "", fmt.Errorf("%q is not an absolute path: write for example /etc/headgate/relay.users", s)
	}
	return s, nil
}
