package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// devFlag adds the flag --dev with shell completion of devices and of the words in more.
func (a *app) devFlag(c *cobra.Command, value, what string, more ...string) *string {
	dev := c.Flags().String("dev", value, what)
	completeFlag(c, "dev", a.completeDevices(more...))
	return dev
}

func showCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [groups|assignments|clients]",
		Short: "Show groups, assignments or clients with their counters",
		Long: `Show prints the kernel's actual state: groups with their counters, the connections that
are assigned at run time, or the active clients of groups with each:. Counters start when
the group is created. Show also lists device settings that Headgate changed, foreign
traffic control, and drift (changes by other programs, which apply would revert).

Rates and drops of clients are those of one second, or of --over. Bytes are counted
since the client appeared. A client without traffic for 4 seconds is not shown.`,
		Example: `  headgate show
  headgate show groups --dev eth0 --over 1s
  headgate show assignments --dev eth0 -o json
  headgate show clients --dev eth0`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"groups", "assignments", "clients"},
	}
	dev := a.devFlag(c, "all", "one device, or all that have bandwidth groups", "all")
	over := c.Flags().Duration("over", 0, "measure rates over this time, such as 1s")
	output, at := outputFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *over < 0 || *over > time.Hour {
			return usageError{fmt.Errorf("--over %v is out of range: write a duration up to 1h, such as 1s", *over), c.CommandPath()}
		}
		if at.isSet() {
			if len(args) > 0 && args[0] == "clients" {
				return usageError{errClientsOnServer, c.CommandPath()}
			}
			if len(args) > 0 && args[0] == "assignments" {
				return a.showAssignmentsRemote(c.Context(), at, *dev, *output)
			}
			return a.showRemote(c.Context(), at, *dev, *over, *output)
		}
		if store, err := a.store(); err == nil { // the actual state can be shown without the store
			a.printPending(store)
		}
		states, err := a.states(*dev)
		if err != nil {
			return err
		}
		if len(args) > 0 && args[0] == "assignments" {
			return a.showAssignments(states, *output)
		}
		if len(args) > 0 && args[0] == "clients" {
			return a.showClients(states, *over, *output)
		}
		return a.showGroups(states, *over, *output)
	}
	return c
}

// states observes one device, or for "all" each device that Headgate shapes.
func (a *app) states(dev string) ([]shaper.State, error) {
	if dev != "all" {
		s, err := a.observeWithForeign(a.dev(dev))
		return []shaper.State{s}, err
	}
	devices, err := a.devices()
	if err != nil {
		return nil, err
	}
	states := []shaper.State{}
	for _, d := range devices {
		s, err := a.observeWithForeign(d)
		switch {
		case errors.Is(err, shaper.ErrNotShaped) || errors.Is(err, shaper.ErrNoDevice): // not shaped, or removed since it was listed
		case err != nil:
			return nil, err
		default:
			states = append(states, s)
		}
	}
	return states, nil
}

// observeWithForeign observes a device, and adds the programs that run before the classifier.
func (a *app) observeWithForeign(dev string) (shaper.State, error) {
	s, err := a.observe(dev)
	if err != nil {
		return s, err
	}
	if _, source, ok := agent.Owner(a.state, dev); ok {
		s.Owner = source
	}
	sooner, err := a.foreignPrograms(dev)
	for _, what := range slices.Concat(sooner[:]...) {
		s.Foreign = append(s.Foreign, what+", which runs before Headgate's classifier")
	}
	return s, err
}

func (a *app) showGroups(states []shaper.State, over time.Duration, f format) error {
	var later []shaper.State
	if over > 0 {
		time.Sleep(over)
		for _, s := range states {
			l, err := a.observeWithForeign(s.Dev)
			if err != nil {
				return err
			}
			later = append(later, l)
		}
	}
	if later == nil {
		return a.print(f, states, func(w io.Writer) error { return groupsTable(w, states, nil) })
	}
	return a.print(f, later, func(w io.Writer) error { return groupsTable(w, later, states) })
}

// groupsTable prints states. before, if not nil, has earlier states of the same devices, for rates.
func groupsTable(w io.Writer, states, before []shaper.State) error {
	if len(states) == 0 {
		fmt.Fprintln(w, "no device has bandwidth groups: create them with \"headgate apply -f FILE\"")
		return nil
	}
	for i, s := range states {
		if i > 0 {
			fmt.Fprintln(w)
		}
		owner := ""
		if s.Owner != "" {
			owner = ", managed by the agent for " + s.Owner
		}
		fmt.Fprintf(w, "%s, enforced by %s%s\n", s.Dev, cmp.Or(s.Engine, "an engine that the host chose"), owner)
		var earlier shaper.State
		if before != nil {
			earlier = before[i]
		}
		for _, d := range []struct {
			name     string
			tree     *group.Tree
			now, was *shaper.DirectionState
		}{{"out", s.Plan.Out, s.Out, earlier.Out}, {"in", s.Plan.In, s.In, earlier.In}} {
			if d.tree == nil || d.now == nil {
				continue
			}
			if err := directionTable(w, d.name, s.Engine, *d.tree, d.now, d.was); err != nil {
				return err
			}
		}
		if len(s.Offloads) > 0 {
			fmt.Fprintf(w, "  device: %s\n", offloadsLine(s.Offloads))
		}
		for _, foreign := range s.Foreign {
			fmt.Fprintf(w, "  foreign: %s\n", foreign)
		}
		for _, change := range s.Drift {
			fmt.Fprintf(w, "  drift: %v\n", change)
		}
	}
	return nil
}

// offloadsLine describes the device settings that Headgate changed. Adjacent settings with the same values
// share one description.
func offloadsLine(all []shaper.DeviceSetting) (line string) {
	said := ""
	for _, o := range all {
		what := fmt.Sprintf(" %v (before: %v)", unit.Bytes(o.Value), unit.Bytes(o.Before))
		if o.ChangedByOther {
			what = fmt.Sprintf(" %v (set by another program, left alone)", unit.Bytes(o.Value))
		}
		if what == said {
			line = strings.TrimSuffix(line, said) + ", "
		} else if line != "" {
			line += "; "
		}
		line, said = line+o.Name+what, what
	}
	return line
}

// directionTable prints a direction's groups. was, if not nil, is an earlier state, for rates.
// Engine quantum has neither ceilings nor queues.
func directionTable(w io.Writer, name string, e group.Engine, t group.Tree, now, was *shaper.DirectionState) error {
	quantum := e == group.Quantum
	what := text.Count(now.Assigned, "assigned connection")
	if now.Queues != "" {
		what += ", queues " + now.Queues
	}
	fmt.Fprintf(w, "  %s: %s\n", name, t.Describe(e, what))
	if now.Quantum != nil {
		fmt.Fprintln(w, "    "+quantumLine(*now.Quantum))
	}
	head := []string{"GROUP", "CLASS", "CLIENTS", "GUARANTEE", "ACTUAL", "MODE", "CEILING", "RATE", "BYTES", "PACKETS", "DROPS", "MARKS", "BACKLOG", "DELAY"}
	left := map[string]bool{"ACTUAL": now.Quantum == nil, "MODE": now.Quantum == nil, "CEILING": quantum, "BACKLOG": quantum, "DELAY": quantum, "RATE": was == nil}
	// A service knows neither classes nor packets of a group, nor the counters of control traffic in parts.
	ofService := !slices.ContainsFunc(now.Groups, func(g shaper.GroupState) bool { return g.Class != "" })
	left["CLASS"], left["PACKETS"] = ofService, ofService
	left["CLIENTS"] = !slices.ContainsFunc(now.Groups, func(g shaper.GroupState) bool { return g.Clients != nil })
	rows := [][]string{head}
	row := func(label string, g shaper.GroupState, before *shaper.GroupState) {
		rate := ""
		if before != nil && now.At.After(was.At) && g.Bytes >= before.Bytes {
			rate = rounded.Rate(usage.RateOver(g.Bytes-before.Bytes, was.At, now.At))
		}
		actual, mode := "", ""
		if g.Quantum != nil {
			actual, mode = rounded.Amount(uint64(g.Quantum.Actual)), g.Quantum.Mode
		}
		clients := ""
		if g.Clients != nil {
			clients = fmt.Sprintf("%d of %d", g.Clients.Active, g.Clients.Max)
		}
		rows = append(rows, []string{
			label, g.Class, clients, rounded.Amount(uint64(g.Guarantee)), actual, mode, rounded.Amount(uint64(g.Ceiling)), rate, rounded.Bytes(g.Bytes), fmt.Sprint(g.Packets),
			fmt.Sprint(g.Drops), fmt.Sprint(g.Marks), rounded.Bytes(g.BacklogBytes), rounded.Delay(g.QueueDelay),
		})
	}
	for i, g := range now.Groups {
		label := g.Path
		if i < len(t.Nodes) {
			label = strings.Repeat("  ", t.Nodes[i].Depth-1) + g.Path[strings.LastIndexByte(g.Path, '/')+1:]
		}
		row(label, g, sameGroup(was, g.Path))
	}
	var control *shaper.GroupState
	if was != nil {
		control = &was.Control
	}
	if !ofService {
		row("(control)", now.Control, control)
	}
	for i, r := range rows {
		rows[i] = nil
		for j, cell := range r {
			if !left[head[j]] {
				rows[i] = append(rows[i], cell)
			}
		}
	}
	return text.Table(w, "    ", rows)
}

// quantumLine describes the state of the quantum algorithm.
func quantumLine(q shaper.QuantumState) string {
	line := fmt.Sprintf("mode %s, %s in the free pool, %s; quantum %v, step %v", q.Mode, rounded.Amount(uint64(q.Pool)), text.Count(int(q.Resets), "reset"), q.Quantum, unit.Bytes(q.StepBytes))
	if q.Overdraft {
		line += ", overdraft"
	}
	return line
}

func sameGroup(d *shaper.DirectionState, path string) *shaper.GroupState {
	if d == nil {
		return nil
	}
	for i := range d.Groups {
		if d.Groups[i].Path == path {
			return &d.Groups[i]
		}
	}
	return nil
}

// assignmentLister is an engine that can list its assignments.
type assignmentLister interface {
	Assignments(dev string) ([]shaper.Assignment, error)
}

func (a *app) assignments(engine group.Engine, dev string) ([]shaper.Assignment, error) {
	lister, ok := a.engines[engine].(assignmentLister)
	if !ok {
		return nil, fmt.Errorf("%s: engine %s cannot list assignments: see their number in \"headgate show groups\"", dev, engine)
	}
	return lister.Assignments(dev)
}

func (a *app) showAssignments(states []shaper.State, f format) error {
	all := []deviceAssignments{}
	for _, s := range states {
		list, err := a.assignments(s.Engine, s.Dev)
		if err != nil {
			return err
		}
		all = append(all, deviceAssignments{s.Dev, append([]shaper.Assignment{}, list...)})
	}
	return a.printAssignments(all, f)
}

// deviceAssignments are the connections that are assigned to groups of a device.
type deviceAssignments struct {
	Dev         string              `json:"dev"`
	Assignments []shaper.Assignment `json:"assignments"`
}

func (a *app) printAssignments(all []deviceAssignments, f format) error {
	return a.print(f, all, func(w io.Writer) error {
		rows := [][]string{{"DEV", "GROUP", "CONNECTION"}}
		for _, d := range all {
			for _, one := range d.Assignments {
				rows = append(rows, []string{d.Dev, one.Group, one.Conn.String()})
			}
		}
		if len(rows) == 1 {
			_, err := fmt.Fprintln(w, "no connection is assigned: assign one with \"headgate assign GROUP\"")
			return err
		}
		return text.Table(w, "", rows)
	})
}
