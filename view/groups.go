package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// WriteGroups prints the groups of each device with their counters. before has earlier states of the same
// devices, in any order, for rates; nil leaves the rates out.
func WriteGroups(w io.Writer, states, before []shaper.State) error {
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
		if n := slices.IndexFunc(before, func(b shaper.State) bool { return b.Dev == s.Dev }); n >= 0 {
			earlier = before[n]
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
		what := fmt.Sprintf(" %d bytes (before: %d)", o.Value, o.Before)
		if o.ChangedByOther {
			what = fmt.Sprintf(" %d bytes (set by another program, left alone)", o.Value)
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
	head := []string{"GROUP", "ORIGIN", "CLASS", "CLIENTS", "GUARANTEE", "ACTUAL", "MODE", "CEILING", "RATE", "BYTES", "PACKETS", "DROPS", "MARKS", "BACKLOG", "DELAY"}
	left := map[string]bool{"ACTUAL": now.Quantum == nil, "MODE": now.Quantum == nil, "CEILING": quantum, "BACKLOG": quantum, "DELAY": quantum, "RATE": was == nil}
	// A service knows neither classes nor packets of a group, nor the counters of control traffic in parts.
	ofService := !slices.ContainsFunc(now.Groups, func(g shaper.GroupState) bool { return g.Class != "" })
	left["CLASS"], left["PACKETS"] = ofService, ofService
	// Most devices have only groups of files.
	left["ORIGIN"] = !slices.ContainsFunc(now.Groups, func(g shaper.GroupState) bool { return g.Origin != "" && g.Origin != group.OriginFile.String() })
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
			label, g.Origin, g.Class, clients, rounded.Amount(uint64(g.Guarantee)), actual, mode, rounded.Amount(uint64(g.Ceiling)), rate, rounded.Bytes(g.Bytes), fmt.Sprint(g.Packets),
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
