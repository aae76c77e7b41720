package cli

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

func checkCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Validate a configuration without changing anything",
		Long: `Check reads the configuration and prints every error with its file, line and key, and
the remedy. If there are no errors it prints the parsed configuration: devices,
directions, groups and rules. It needs no privileges.

With --server, the controller also validates the configuration for one of its hosts, and
check warns of conflicts with the state that the host's agent reported: devices that do
not exist, devices that the host's local files configure, and limits above a link's
speed.`,
		Example: `  headgate check -f /etc/headgate
  headgate check -f eth0.yaml -o json
  headgate check -f web1.yaml --server default --host web1
  generate-config | headgate check -f - --offline`,
		Args: cobra.NoArgs,
	}
	files, output := fileFlag(c), outputFlag(c)
	offline := c.Flags().Bool("offline", false, "the configuration is for another machine: do not check that its cgroups exist on this one")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		here := !*offline && !at.isSet()
		var set config.Set
		var err error
		if len(*files) > 0 && !at.isSet() && config.NoFiles(*files) && remote.HasJoined(filepath.Join(a.state, filepath.Base(agentDir))) {
			a.note("no configuration files in %s: the controller configures this host", strings.Join(*files, " "))
		} else {
			set, err = a.load(c, *files, here)
		}
		if err == nil && at.isSet() {
			err = a.checkOnServer(c.Context(), at, set)
		}
		var mistakes config.Errors
		if err != nil && (*output == "table" || !asMistakes(err, &mistakes)) {
			return err
		}
		report := checkReport{OK: err == nil, Errors: mistakes}
		if err == nil {
			report.Interfaces, report.Servers, report.Collectives = describe(set), describeServers(set), describeCollectives(set)
			a.noteClients(set)
			a.warnPlacement(set, here)
			a.noteApproximate(set)
			if here {
				a.warnSpeeds(set)
				a.warnCollectives(set)
			}
		}
		if err := a.print(*output, report, report.table); err != nil {
			return err
		}
		if !report.OK {
			return errInvalidReported
		}
		return nil
	}
	return c
}

// checkReport is the output of check -o json.
type checkReport struct {
	OK          bool              `json:"ok"`
	Errors      config.Errors     `json:"mistakes,omitempty"`
	Interfaces  []checkInterface  `json:"interfaces,omitempty"`
	Servers     []checkServers    `json:"servers,omitempty"`
	Collectives []checkCollective `json:"collectives,omitempty"`
}

type checkInterface struct {
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

func describe(set config.Set) (out []checkInterface) {
	for _, i := range set.Interfaces {
		written := ""
		if i.WrittenDev() != i.Dev {
			written = i.WrittenDev()
		}
		out = append(out, checkInterface{i.Dev, written, i.File, i.Line, i.Perspective, i.Engine, i.Overhead, i.QuantumOptions, i.OutTree, i.InTree})
	}
	return out
}

// checkServers describes a document of kind Servers: probe servers and their addresses.
type checkServers struct {
	File    string            `json:"file"`
	Line    int               `json:"line"`
	Measure string            `json:"measure"`
	Servers map[string]string `json:"servers"`
}

func describeServers(set config.Set) (out []checkServers) {
	for _, list := range set.Servers {
		c := checkServers{list.File, list.Line, list.Measure, map[string]string{}}
		for _, s := range list.Servers {
			c.Servers[s.Name] = s.Address.String()
		}
		out = append(out, c)
	}
	return out
}

// checkCollective describes a connection set: connections of a cgroup or unit, connections that
// programs of some users join, or both.
type checkCollective struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Name   string `json:"name"`
	Cgroup string `json:"cgroup,omitempty"`
	Unit   string `json:"unit,omitempty"`
	// Rules counts the rules that select connections of the cgroup or unit; 0 selects all.
	Rules          int      `json:"rules"`
	PerDestination bool     `json:"per_destination"`
	Join           []string `json:"join,omitempty"`
	Seed           bool     `json:"seed_law"`
}

func describeCollectives(set config.Set) (out []checkCollective) {
	for _, c := range set.Collectives {
		out = append(out, checkCollective{c.File, c.Line, c.Name, c.Cgroup, c.Unit, len(c.Rules), c.PerDestination, c.Join, c.PaperControl})
	}
	return out
}

// String describes which connections are in the set.
func (c checkCollective) String() string {
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
	return text
}

func (r checkReport) table(w io.Writer) error {
	for _, c := range r.Collectives {
		fmt.Fprintf(w, "set %s: %v (%s:%d)\n", c.Name, c, c.File, c.Line)
	}
	for _, s := range r.Servers {
		fmt.Fprintf(w, "%s between %s (%s:%d)\n", s.Measure, text.Count(len(s.Servers), "server"), s.File, s.Line)
		for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
			fmt.Fprintf(w, "  %s at %s\n", name, s.Servers[name])
		}
	}
	for n, i := range r.Interfaces {
		if n > 0 {
			fmt.Fprintln(w)
		}
		name := i.Dev
		if i.Written != "" {
			name += ", written as " + i.Written
		}
		fmt.Fprintf(w, "%s (%s:%d), seen from the %s, enforced by %s\n", name, i.File, i.Line, i.Perspective, i.Engine)
		if i.Engine == group.Quantum {
			fmt.Fprintf(w, "  %s\n", i.Options.Describe())
		}
		if i.Overhead != (group.Overhead{}) {
			fmt.Fprintf(w, "  overhead: %v added to each packet, counted size at least %v\n", i.Overhead.Frame, i.Overhead.Minimum)
		}
		for _, d := range []struct {
			name string
			tree *group.Tree
		}{{"out", i.Out}, {"in", i.In}} {
			if d.tree == nil {
				continue
			}
			if err := treeTable(w, d.name, i.Engine, *d.tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeTable prints a direction: its groups as a table, child groups indented, and
// its rules in the order in which they are matched.
func treeTable(w io.Writer, name string, e group.Engine, t group.Tree) error {
	fmt.Fprintln(w, directionLine(name, e, t, text.Count(len(t.Nodes), "group")))
	rows := [][]string{{"GROUP", "GUARANTEE", "CEILING", ""}}
	for i, n := range t.Nodes {
		note := ""
		if i == t.Default {
			note = "default"
		}
		if text := clientsText(n); text != "" {
			note = strings.TrimPrefix(note+"; "+text, "; ")
		}
		label := strings.Repeat("  ", n.Depth-1) + n.Path[strings.LastIndexByte(n.Path, '/')+1:]
		rows = append(rows, []string{label, rounded.Amount(uint64(n.Guarantee)), rounded.Amount(uint64(n.Ceiling)), note})
	}
	if err := text.Table(w, "    ", rows); err != nil || len(t.Rules) == 0 {
		return err
	}
	rows = [][]string{{"RULE", "MATCHES", "GROUP"}}
	for i, r := range t.Rules {
		rows = append(rows, []string{fmt.Sprint(i), r.Selector.String(), t.Nodes[r.Node].Path})
	}
	return text.Table(w, "    ", rows)
}

// directionLine describes a direction as a whole: its limit and its spare policy.
func directionLine(name string, e group.Engine, t group.Tree, what string) string {
	of, how := "", lending[t.Spare]
	if e == group.Quantum {
		of, how = " of payload", "first come, first served"
	}
	return fmt.Sprintf("  %s: limit %v%s, %s; idle groups lend %s", name, t.Limit, of, what, how)
}

var lending = map[group.Spare]string{
	group.Proportional: "in proportion to the guarantees",
	group.Equal:        "equally",
	group.Priority:     "to the lowest priority first",
}
