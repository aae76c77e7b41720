package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// Network is one "kind: Network" document: a network of OpenFlow switches and Linux routers.
type Network struct {
	fabric.Config
	File string
	Line int
	// Notes are remarks about the document.
	Notes []Note

	places map[string]position // of each key
}

// Where returns the file, line and column of a key, or of the nearest parent key, for problems of fabric.Config.Bind.
func (n Network) Where(key string) (file string, line, column int) {
	p := (&decoder{places: n.places}).place(key, position{line: n.Line, column: 1})
	return n.File, p.line, p.column
}

// ParseNetwork parses a text that is one document of kind: Network. name is the file name in errors.
func ParseNetwork(name, text string) (fabric.Config, error) {
	set, err := Parse(name, []byte(text))
	if err == nil && len(set.Networks) != 1 {
		err = fmt.Errorf("%d documents of kind: Network: write one", len(set.Networks))
	}
	if err != nil {
		return fabric.Config{}, err
	}
	return set.Networks[0].Config, nil
}

// networkDecoder converts a document whose ports refer to its switches and routers.
type networkDecoder struct {
	*decoder
	switches map[string]fabric.DPID // and routers, by name
	ids      map[fabric.DPID]bool
	later    []func()
	ports    int             // that are listed at switches
	mistaken map[string]bool // keys that have a mistake, or have one below them
}

// afterwards reads a key when all switches are known, wherever the document has them.
func (d *networkDecoder) afterwards(read func(*node, string)) func(*node, string) {
	return func(n *node, key string) { d.later = append(d.later, func() { read(n, key) }) }
}

func networkDocument(s *source, n *node) Network {
	d := &networkDecoder{decoder: newDecoder(s), switches: map[string]fabric.DPID{}, ids: map[fabric.DPID]bool{}}
	out := Network{File: s.file, Line: n.line, places: d.places}
	out.HostsPerPort = fabric.DefaultHostsPerPort
	d.fields(n, "", "a network", []field{
		{"kind", func(*node, string) {}},
		{"name", one(d.decoder, &out.Name, serverName)},
		{"switches", func(n *node, key string) {
			d.each(n, key, "a switch", func(n *node, key string) { out.Switches = append(out.Switches, d.networkSwitch(n, key)) })
		}},
		{"routers", func(n *node, key string) {
			d.each(n, key, "a router", func(n *node, key string) { out.Routers = append(out.Routers, d.router(n, key)) })
		}},
		{"unknown_switches", one(d.decoder, &out.AcceptUnknown, unknownSwitches)},
		{"sites", func(n *node, key string) {
			d.each(n, key, "a site", func(n *node, key string) {
				var site fabric.Site
				d.fields(n, key, "a site", []field{
					{"name", one(d.decoder, &site.Name, serverName)},
					{"parent", one(d.decoder, &site.Parent, serverName)},
				})
				d.needs(n, key, "name", "the site has no %s: write for example %[1]s: north")
				out.Sites = append(out.Sites, site)
			})
		}},
		{"links", d.afterwards(func(n *node, key string) {
			d.each(n, key, "a link", func(n *node, key string) { out.Links = append(out.Links, d.networkLink(n, key)) })
		})},
		{"hosts", d.afterwards(func(n *node, key string) {
			d.each(n, key, "a host", func(n *node, key string) { out.Hosts = append(out.Hosts, d.networkHost(n, key)) })
		})},
		{"relays", func(n *node, key string) { out.Relays = d.relays(n, key) }},
		{"listen", func(n *node, key string) {
			d.each(n, key, "a listener", func(n *node, key string) { out.Listen = append(out.Listen, d.listener(n, key)) })
		}},
		{"trust", d.afterwards(func(n *node, key string) {
			d.each(n, key, "a port", func(n *node, key string) {
				var p fabric.PortRef
				d.port(&p)(n, key)
				out.Trust = append(out.Trust, p)
			})
		})},
		{"apply_measured", one(d.decoder, &out.ApplyMeasured, measuredPart)},
		{"hosts_per_port", one(d.decoder, &out.HostsPerPort, hostCount)},
	})
	d.findMistaken()
	for _, read := range d.later {
		read()
	}
	if out.Listen == nil && (out.HasSwitches() || len(out.Routers) == 0) {
		out.Listen = []fabric.Listener{{Address: netip.AddrPortFrom(netip.IPv4Unspecified(), fabric.ListenPort), TLS: true}}
	}
	d.needs(n, "", "name", "the network has no %s: write for example %[1]s: campus")
	d.findMistaken()
	d.checkNetwork(n, out.Config)
	out.Notes = d.plainListeners(out.Config)
	return out
}

func (d *networkDecoder) networkSwitch(n *node, key string) (s fabric.SwitchConfig) {
	d.fields(n, key, "a switch", []field{
		{"id", one(d.decoder, &s.ID, datapathID)},
		{"name", one(d.decoder, &s.Name, switchName)},
		{"site", one(d.decoder, &s.Site, serverName)},
		{"host_ports", oneOrMore(d.decoder, &s.HostPorts, d.portNames)},
		{"link_ports", oneOrMore(d.decoder, &s.LinkPorts, d.portNames)},
	})
	d.needs(n, key, "id", "the switch has no %s: write the datapath id that ovs-vsctl get bridge NAME datapath_id prints")
	d.ids[s.ID] = true
	if s.Name != "" {
		d.switches[s.Name] = s.ID
	}
	return s
}

func (d *networkDecoder) router(n *node, key string) (r fabric.RouterConfig) {
	d.fields(n, key, "a router", []field{
		{"name", one(d.decoder, &r.Name, switchName)},
		{"host", one(d.decoder, &r.Host, serverName)},
		{"site", one(d.decoder, &r.Site, serverName)},
	})
	d.needs(n, key, "name", "the router has no %s: write for example %[1]s: r1")
	if _, given := d.places[key+".host"]; !given {
		r.Host = r.Name
	}
	if _, isSwitch := d.switches[r.Name]; r.Name != "" && !isSwitch {
		d.switches[r.Name] = r.ID()
	}
	return r
}

func (d *networkDecoder) networkLink(n *node, key string) fabric.LinkConfig {
	l := fabric.LinkConfig{Cost: fabric.DefaultCost}
	d.fields(n, key, "a link", []field{
		{"ends", func(n *node, key string) {
			if n.shape == list && len(n.items) != 2 {
				d.invalid(n, key, "a link has two ends, and %d are listed: write for example [s1/3, s2/4]", len(n.items))
				return
			}
			i := 0
			d.each(n, key, "two ports", func(n *node, key string) {
				d.port(&l.Ends[i])(n, key)
				i++
			})
		}},
		{"capacity", one(d.decoder, &l.Capacity, capacity)},
		{"back", one(d.decoder, &l.Back, capacity)},
		{"cost", one(d.decoder, &l.Cost, linkCost)},
		{"reservable", one(d.decoder, &l.Reservable, reservable)},
	})
	d.needs(n, key, "ends", "the link has no %s: write for example %[1]s: [s1/3, s2/4]")
	return l
}

func (d *networkDecoder) networkHost(n *node, key string) (h fabric.HostConfig) {
	d.fields(n, key, "a host", []field{
		{"name", one(d.decoder, &h.Name, serverName)},
		{"mac", one(d.decoder, &h.MAC, hostMAC)},
		{"vlan", one(d.decoder, &h.VLAN, hostVLAN)},
		{"addresses", oneOrMore(d.decoder, &h.Addrs, func(s string) ([]netip.Addr, error) {
			a, err := hostIP(s)
			return []netip.Addr{a}, err
		})},
		{"at", d.port(&h.At)},
		{"capacity", one(d.decoder, &h.Capacity, capacity)},
	})
	d.needs(n, key, "mac", "the host has no %s: write the address of its interface, for example %[1]s: 02:00:00:00:00:01")
	d.needs(n, key, "at", "the host is at no port: write for example %[1]s: s1/1")
	slices.SortFunc(h.Addrs, netip.Addr.Compare)
	return h
}

func (d *networkDecoder) listener(n *node, key string) fabric.Listener {
	l := fabric.Listener{TLS: true}
	if n.shape == scalar {
		d.invalid(n, key, "a listener is a mapping: write {address: \"0.0.0.0:%d\"} for switches that connect to ssl:, and add tls: false for tcp:", fabric.ListenPort)
		return l
	}
	d.fields(n, key, "a listener", []field{
		{"address", one(d.decoder, &l.Address, switchesAddress)},
		{"tls", one(d.decoder, &l.TLS, withTLS)},
	})
	d.needs(n, key, "address", fmt.Sprintf("the listener has no %%s: write for example %%[1]s: \"0.0.0.0:%d\"", fabric.ListenPort))
	return l
}

// port parses "s1/3", "s1/eth3", "0000000000000001/3", or an interface of a router: "r1/eth0".
func (d *networkDecoder) port(out *fabric.PortRef) func(*node, string) {
	return func(n *node, key string) {
		var at, port string
		if !value(d.decoder, &at, func(s string) (string, error) {
			name, rest, found := strings.Cut(s, "/")
			port = rest
			if !found || name == "" || rest == "" {
				return "", fmt.Errorf("%q is not a port of a switch: write the switch, a slash and the port's number or name, for example s1/3", s)
			}
			return name, nil
		})(n, key) {
			return
		}
		id, problem := d.switchOf(at)
		p, err := fabric.ParsePortName(port)
		switch {
		case err != nil:
			d.invalid(n, key, "%v", err)
		case problem != "":
			d.invalid(n, key, "%s", problem)
		case id == 0:
			d.broken[key] = true // the switch's id is reported
		}
		*out = fabric.PortRef{Switch: id, Port: p}
	}
}

// switchOf returns the switch with a name or an id, or the router with a name. 0 without a problem is one whose own mistake
// is reported.
func (d *networkDecoder) switchOf(s string) (id fabric.DPID, problem string) {
	if id, named := d.switches[s]; named {
		return id, ""
	}
	id, err := datapathID(s)
	switch {
	case err == nil && d.ids[id]:
		return id, ""
	case d.mistaken["switches"] || d.mistaken["routers"]:
		return 0, ""
	case err == nil:
		return 0, fmt.Sprintf("switch %s is not listed: add it to switches, or correct the id", id)
	case strings.Trim(s, "0123456789") == "":
		return 0, err.Error()
	}
	var names []string
	for name := range d.switches {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) <= maxSuggestions {
		if meant := nearest(s, names); meant != "" {
			return 0, fmt.Sprintf("no switch or router has the name %q: did you mean %s?", s, meant)
		}
	}
	return 0, fmt.Sprintf("no switch or router has the name %q: add it to switches or routers, or correct the name", s)
}

// maxSuggestions is the number of names up to which a similar one is looked for, which takes long.
const maxSuggestions = 64

// findMistaken sets mistaken.
func (d *networkDecoder) findMistaken() {
	d.mistaken = map[string]bool{}
	for key := range d.broken {
		for ; key != "" && !d.mistaken[key]; key = parent(key) {
			d.mistaken[key] = true
		}
	}
}

// checkNetwork reports what of a network cannot be.
func (d *networkDecoder) checkNetwork(n *node, c fabric.Config) {
	if len(c.Switches) > program.MaxSwitches {
		d.invalid(n, "switches", "%d switches are listed, and a network has at most %d: divide it", len(c.Switches), program.MaxSwitches)
	}
	if len(c.Routers) > fabric.MaxRouters {
		d.invalid(n, "routers", "%d routers are listed, and a network has at most %d: divide it", len(c.Routers), fabric.MaxRouters)
		return
	}
	for _, p := range c.Check() {
		if !d.follows(p.Field) {
			d.addError(d.place(p.Field, n.position), p.Field, "%s", p.Problem)
		}
	}
}

// follows reports whether a problem can be the consequence of text that could not be parsed.
func (d *networkDecoder) follows(field string) bool {
	key := lastKey(field)
	if d.mistaken[field] || (key == "site" || key == "parent") && d.mistaken["sites"] || field == "switches" && d.mistaken["routers"] {
		return true
	}
	for key := field; key != ""; key = parent(key) {
		if d.broken[key] {
			return true
		}
	}
	return false
}

// checkNetworks reports networks with the same name.
func (l *loader) checkNetworks() {
	var all []namedDocument
	for _, n := range l.set.Networks {
		all = append(all, namedDocument{n.Name, n.File, n.Line, n})
	}
	l.checkNames("network", all)
}

// namedDocument is a document with a name, and its place.
type namedDocument struct {
	name, file string
	line       int
	places     interface {
		Where(key string) (file string, line, column int)
	}
}

// checkNames reports documents of a kind with the same name.
func (l *loader) checkNames(kind string, all []namedDocument) {
	first := map[string]namedDocument{}
	for _, n := range all {
		earlier, dup := first[n.name]
		if !dup || n.name == "" {
			first[n.name] = n
			continue
		}
		file, line, column := n.places.Where("name")
		l.mistakes = append(l.mistakes, Error{file, line, column, "name",
			fmt.Sprintf("%q is already the name of the %s at %s:%d: names must be unique", n.name, kind, earlier.file, earlier.line)})
	}
}

// plainListeners notes listeners at which others can act as a switch.
func (d *networkDecoder) plainListeners(c fabric.Config) (notes []Note) {
	for i, l := range c.Listen {
		if l.TLS || l.Address.Addr().IsLoopback() {
			continue
		}
		as := "one of the switches"
		if c.AcceptUnknown {
			as = "a switch"
		}
		key := fmt.Sprintf("listen[%d]", i)
		notes = append(notes, Note{d.file, d.place(key, position{}).line, key, fmt.Sprintf(
			"%s is neither encrypted nor authenticated: any host that reaches it can act as %s; remove tls: false, or listen only where switches are connected", l.Address, as)})
	}
	return notes
}

func unknownSwitches(s string) (accept bool, err error) {
	if s != "accept" && s != "refuse" {
		return false, fmt.Errorf("%q is not what to do with switches that are not listed: write refuse or accept", s)
	}
	return s == "accept", nil
}

// capacity parses a rate above 0.
func capacity(s string) (unit.Rate, error) {
	v, err := unit.ParseRate(s)
	if err == nil && v == 0 {
		err = errors.New("a link with a capacity of 0 carries nothing: write its rate, for example 1Gbit, or remove the link")
	}
	return v, err
}
