package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/lab/traffic"
)

// Event is something that happens while a lab runs: a link changes, or a flow or a
// program starts or stops. One of Link, Start and Stop is given.
type Event struct {
	// At is the time since the start of the run.
	At time.Duration
	// Link is the name of the link that changes, Forward and Back what its
	// directions become; nil leaves one as it is.
	Link          string `json:",omitempty"`
	Forward, Back *Path  `json:",omitempty"`
	// Start and Stop are names of flows and programs.
	Start string `json:",omitempty"`
	Stop  string `json:",omitempty"`

	// words are what the file says, for people.
	words string
}

// String says what happens.
func (e Event) String() string {
	switch {
	case e.Start != "":
		return "start " + e.Start
	case e.Stop != "":
		return "stop " + e.Stop
	case e.words != "":
		return "set " + e.Link + " " + e.words
	}
	return "set " + e.Link
}

// linkState is what a link is asked for from one time on: from the beginning, or
// from an event.
type linkState struct {
	event int // in Timeline; -1 is the beginning
	paths [2]Path
}

// states are the states of each link, in the order of time.
func (t *Topology) states() [][]linkState {
	out := make([][]linkState, len(t.Links))
	byName := map[string]int{}
	for i, name := range t.LinkNames() {
		byName[name] = i
		out[i] = []linkState{{-1, [2]Path{t.Links[i].Forward, t.Links[i].Back}}}
	}
	for n, e := range t.Timeline {
		i, ok := byName[e.Link]
		if e.Link == "" || !ok {
			continue
		}
		s := linkState{n, out[i][len(out[i])-1].paths}
		for dir, p := range [2]*Path{e.Forward, e.Back} {
			if p != nil {
				s.paths[dir] = *p
			}
		}
		out[i] = append(out[i], s)
	}
	return out
}

// span is when something runs: from start, and until stop if that is not 0.
type span struct{ start, stop time.Duration }

// spans are when each flow and program that the timeline names runs.
func (t *Topology) spans() map[string]span {
	out := map[string]span{}
	for _, e := range t.Timeline {
		switch {
		case e.Start != "":
			s := out[e.Start]
			s.start = e.At
			out[e.Start] = s
		case e.Stop != "":
			s := out[e.Stop]
			s.stop = e.At
			out[e.Stop] = s
		}
	}
	return out
}

// timedFlows are the flows as the timeline lets them run. A flow's schedule counts
// from its start.
func (t *Topology) timedFlows() []traffic.Flow {
	spans := t.spans()
	out := slices.Clone(t.Flows)
	for i := range out {
		f := &out[i]
		s := spans[f.Name]
		if s.start > 0 {
			f.Start = s.start
		}
		if s.stop > 0 {
			f.Stop = s.stop
		}
	}
	return out
}

// timelineProblems finds events that name nothing, that come in the wrong order,
// and links that no link can become.
func (t *Topology) timelineProblems(add adder) {
	startable, flow, bounded := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range t.Flows {
		startable[f.Name], flow[f.Name] = true, true
		bounded[f.Name] = f.Start > 0 || f.Stop > 0
	}
	spans := t.spans()
	for _, p := range t.Programs {
		startable[p.Name] = true
	}
	links := t.LinkNames()
	began, ended := map[string]bool{}, map[string]bool{}
	for n, e := range t.Timeline {
		at := fmt.Sprintf("timeline[%d]", n)
		if n > 0 && e.At < t.Timeline[n-1].At {
			add(at+".at", "%v is before the event above it, at %v: write events in the order of time", e.At, t.Timeline[n-1].At)
		}
		if e.At < 0 {
			add(at+".at", "%v is before the start of the run", e.At)
		}
		if t.Duration > 0 && e.At >= t.Duration {
			add(at+".at", "%v is not before the end of the run, at %v: make duration longer, or leave the event out", e.At, t.Duration)
		}
		kinds := 0
		for _, given := range []bool{e.Link != "", e.Start != "", e.Stop != ""} {
			if given {
				kinds++
			}
		}
		if kinds != 1 {
			add(at, "an event does one thing: write start or stop with the name of a flow or program, or link with set")
			continue
		}
		switch name := e.Start + e.Stop; {
		case e.Link != "":
			if !slices.Contains(links, e.Link) {
				add(at+".link", "there is no link %q: links are %s", e.Link, some(links))
			} else if e.Forward == nil && e.Back == nil {
				add(at+".set", "nothing is set: write for example set: {rate: 10Mbit}")
			}
			changeProblems(at, e, add)
		case !startable[name]:
			add(at, "there is no flow or program %q: add it, or correct the name", name)
		case bounded[name]:
			add(at, "flow %q has a start or stop of its own: leave that out, or the event", name)
		case e.Start != "" && (began[name] || ended[name]):
			add(at+".start", "%q was started or stopped before: it runs once", name)
		case e.Stop != "" && ended[name]:
			add(at+".stop", "%q was stopped before", name)
		case e.Stop != "" && flow[name] && e.At <= spans[name].start:
			add(at+".stop", "flow %q starts at %v: it can only stop after that", name, spans[name].start)
		default:
			began[name] = began[name] || e.Start != ""
			ended[name] = ended[name] || e.Stop != ""
		}
	}
}

// changeProblems tells what is wrong with what a link becomes.
func changeProblems(at string, e Event, add adder) {
	told := map[string]bool{}
	for _, p := range [2]*Path{e.Forward, e.Back} {
		if p == nil {
			continue
		}
		for _, problem := range p.Problems() {
			if key := at + ".set." + problem.Key; !told[key+problem.What] {
				add(key, "%s", problem.What)
				told[key+problem.What] = true
			}
		}
	}
}

// some lists names, and not more than a line of them.
func some(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
