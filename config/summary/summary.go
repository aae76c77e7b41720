package summary

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
)

// Report describes a configuration, or has its mistakes.
type Report struct {
	OK          bool          `json:"ok"`
	Errors      config.Errors `json:"mistakes,omitempty"`
	Interfaces  []Interface   `json:"interfaces,omitempty"`
	Servers     []Servers     `json:"servers,omitempty"`
	Collectives []Collective  `json:"collectives,omitempty"`
	Relays      []Relay       `json:"relays,omitempty"`
	Networks    []Network     `json:"networks,omitempty"`
	// Reservations are those of the files, and not those of a service.
	Reservations []Reservation `json:"reservations,omitempty"`
}

// Interface describes a document of kind Interface.
type Interface struct {
	Dev         string            `json:"dev"`
	Written     string            `json:"written,omitempty"` // the alternative name that the file uses
	File        string            `json:"file"`
	Line        int               `json:"line"`
	Perspective group.Perspective `json:"perspective"`
	Engine      group.Engine      `json:"engine"`
	Overhead    group.Overhead    `json:"overhead"`
	// Options is for the engine quantum only.
	Options group.QuantumOptions `json:"quantum,omitzero"`
	Out     *group.Tree          `json:"out,omitempty"`
	In      *group.Tree          `json:"in,omitempty"`
}

// Of describes a valid configuration.
func Of(set config.Set) Report {
	return Report{OK: true, Interfaces: interfaces(set), Servers: servers(set), Collectives: collectives(set), Relays: relays(set), Networks: networks(set), Reservations: reservations(set)}
}

func interfaces(set config.Set) (out []Interface) {
	for _, i := range set.Interfaces {
		written := ""
		if i.WrittenDev() != i.Dev {
			written = i.WrittenDev()
		}
		out = append(out, Interface{i.Dev, written, i.File, i.Line, i.Perspective, i.Engine, i.Overhead, i.QuantumOptions, i.OutTree, i.InTree})
	}
	return out
}

// Servers describes a document of kind Servers: probe servers and their addresses.
type Servers struct {
	File    string            `json:"file"`
	Line    int               `json:"line"`
	Measure string            `json:"measure"`
	Servers map[string]string `json:"servers"`
}

func servers(set config.Set) (out []Servers) {
	for _, list := range set.Servers {
		c := Servers{list.File, list.Line, list.Measure, map[string]string{}}
		for _, s := range list.Servers {
			c.Servers[s.Name] = s.Address.String()
		}
		out = append(out, c)
	}
	return out
}

// Collective describes a connection set: connections of a cgroup or unit, connections that
// programs of some users join, or both.
type Collective struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Name   string `json:"name"`
	Cgroup string `json:"cgroup,omitempty"`
	Unit   string `json:"unit,omitempty"`
	// Rules counts the rules that select connections of the cgroup or unit; 0 selects all.
	Rules          int      `json:"rules"`
	PerDestination bool     `json:"per_destination"`
	PerBottleneck  bool     `json:"per_bottleneck,omitempty"`
	Join           []string `json:"join,omitempty"`
	Seed           bool     `json:"seed_law"`
	// Bottleneck is the link that sets have in common, SetWeight the weight beside them.
	Bottleneck string  `json:"bottleneck,omitempty"`
	SetWeight  float64 `json:"weight,omitempty"`
}

func collectives(set config.Set) (out []Collective) {
	for _, c := range set.Collectives {
		out = append(out, Collective{c.File, c.Line, c.Name, c.Cgroup, c.Unit, len(c.Rules), c.PerDestination, c.PerBottleneck, c.Join, c.PaperControl, c.Bottleneck, c.SetWeight})
	}
	return out
}

// String describes which connections are in the set.
func (c Collective) String() string {
	var of []string
	switch {
	case c.Unit != "":
		of = append(of, "of unit "+c.Unit)
	case c.Cgroup != "":
		of = append(of, "of cgroup "+c.Cgroup)
	}
	if c.Rules > 0 {
		of[0] += ", by " + text.Count(c.Rules, "rule")
	}
	if len(c.Join) > 0 {
		of = append(of, "that programs of "+strings.Join(c.Join, " or ")+" join")
	}
	text := "the connections " + strings.Join(of, ", and those ")
	if c.PerDestination {
		text += "; each destination separately"
	}
	if c.PerBottleneck {
		text += "; each bottleneck separately"
	}
	if c.Bottleneck != "" {
		text += fmt.Sprintf("; weight %g on %s", c.SetWeight, c.Bottleneck)
	}
	return text
}
