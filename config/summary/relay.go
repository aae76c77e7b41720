package summary

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"headgate.dev/headgate/config"
)

// Relay describes a relay agent.
type Relay struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Name    string `json:"name"`
	Key     string `json:"key"`
	Encrypt bool   `json:"encrypt"`
	// Accept is nil if the agent accepts no streams.
	Accept   *RelayAccept   `json:"accept,omitempty"`
	Exits    []RelayExit    `json:"exits,omitempty"`
	Forwards []RelayForward `json:"forward,omitempty"`
	// Socks and HTTPProxy are the listeners for requests.
	Socks     *RelayProxy `json:"socks,omitempty"`
	HTTPProxy *RelayProxy `json:"http_proxy,omitempty"`
	// Take describes the rules by which connections are taken transparently.
	Take []string `json:"take,omitempty"`
}

// RelayAccept is how an agent accepts streams, and to which prefixes it connects.
type RelayAccept struct {
	Listen       string         `json:"listen"`
	Destinations []netip.Prefix `json:"destinations"`
	KeepSource   bool           `json:"keep_source"`
}

// RelayExit is an exit and the paths to it.
type RelayExit struct {
	Address      netip.AddrPort `json:"address"`
	Destinations []netip.Prefix `json:"destinations"`
	// Announced means that the exit announces its destinations, so that there are none here.
	Announced bool        `json:"announced,omitempty"`
	Paths     []RelayPath `json:"paths"`
}

// RelayPath is a path to an exit.
type RelayPath struct {
	Name string `json:"name"`
	// Selection describes what selects the path, "" for the path of the exit's address.
	Selection string `json:"selection,omitempty"`
	// Streams is the number of streams, 0 for as many as help.
	Streams int `json:"streams,omitempty"`
}

// RelayForward is a listener for applications.
type RelayForward struct {
	Listen string         `json:"listen"`
	To     netip.AddrPort `json:"to"`
}

// RelayProxy is a listener for applications that name their destinations, and whether they need a user and a password.
type RelayProxy struct {
	Listen string `json:"listen"`
	Users  bool   `json:"users"`
}

func relayProxy(listen, users string) *RelayProxy {
	if listen == "" {
		return nil
	}
	return &RelayProxy{listen, users != ""}
}

func relays(set config.Set) (out []Relay) {
	for _, c := range set.Relays {
		r := Relay{File: c.File, Line: c.Line, Name: c.Name, Key: c.KeyFile, Encrypt: !c.Plain}
		if a := c.Accept; a.Listen != "" {
			r.Accept = &RelayAccept{a.Listen, a.Destinations, a.KeepSource}
		}
		for _, e := range c.Exits {
			exit := RelayExit{Address: e.Address, Destinations: e.Destinations, Announced: e.Announced}
			if e.Announced {
				exit.Destinations = []netip.Prefix{}
			}
			for _, p := range e.Paths {
				exit.Paths = append(exit.Paths, RelayPath{p.Name, p.String(), p.Streams})
			}
			r.Exits = append(r.Exits, exit)
		}
		for _, f := range c.Forwards {
			r.Forwards = append(r.Forwards, RelayForward{f.Listen, f.To})
		}
		r.Socks, r.HTTPProxy = relayProxy(c.Socks.Listen, c.Socks.UsersFile), relayProxy(c.HTTPProxy.Listen, c.HTTPProxy.UsersFile)
		for _, rule := range c.Take {
			r.Take = append(r.Take, rule.String())
		}
		out = append(out, r)
	}
	return out
}

func (r Relay) write(w io.Writer) {
	streams := "encrypted streams"
	if !r.Encrypt {
		streams = "streams that are not encrypted"
	}
	fmt.Fprintf(w, "relay agent %s, %s (%s:%d)\n", r.Name, streams, r.File, r.Line)
	if a := r.Accept; a != nil {
		from := ""
		if a.KeepSource {
			from = " from the clients' addresses"
		}
		fmt.Fprintf(w, "  accepts streams at %s, and connects to %s%s\n", a.Listen, prefixes(a.Destinations), from)
	}
	for _, e := range r.Exits {
		destinations := prefixes(e.Destinations)
		if e.Announced {
			destinations = "the destinations that it announces"
		}
		fmt.Fprintf(w, "  exit %s for %s\n", e.Address, destinations)
		for _, p := range e.Paths {
			text := "    path " + p.Name
			if p.Selection != "" {
				text += " " + p.Selection
			}
			if p.Streams > 0 {
				text += fmt.Sprintf(", streams: %d", p.Streams)
			}
			fmt.Fprintln(w, text)
		}
	}
	for _, f := range r.Forwards {
		fmt.Fprintf(w, "  forwards %s to %s\n", f.Listen, f.To)
	}
	for _, p := range []struct {
		kind string
		*RelayProxy
	}{{"SOCKS5", r.Socks}, {"HTTP", r.HTTPProxy}} {
		if p.RelayProxy != nil {
			users := ""
			if p.Users {
				users = ", for users with a password"
			}
			fmt.Fprintf(w, "  %s proxy at %s%s\n", p.kind, p.Listen, users)
		}
	}
	for _, rule := range r.Take {
		fmt.Fprintf(w, "  takes connections: %s\n", rule)
	}
}

func prefixes(all []netip.Prefix) string {
	texts := make([]string, len(all))
	for n, p := range all {
		texts[n] = p.String()
	}
	return strings.Join(texts, ", ")
}
