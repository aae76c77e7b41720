package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/lab/traffic"
)

// Event is a change during a run: a link changes, or a flow or a program starts or stops. One of Link,
// Start and Stop is set.
type Event struct {
	// At is the time since the start of the run.
	At time.Duration
	// Link is the name of the link that changes, Forward and Back are the new properties of its
	// directions; nil is no change.
	Link          string `json:",omitempty"`
	Forward, Back *Path  `json:",omitempty"`
	// Start and Stop are names of flows and programs.
	Start string `json:",omitempty"`
	Stop  string `json:",omitempty"`

	// words is the event as written in the file, for output.
	words string
}

// String describes the event.
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

// linkState has the properties of a link from one time on: from the start, or from an event.
type linkState struct {
	event int // index in Timeline; -1 is the start
	paths [2]Path
}

// states returns the states of each link, in the order of time.
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

// span is the time from start to stop; a stop of 0 is never.
type span struct{ start, stop time.Duration }

// spans returns the times of each flow and program that the timeline names.
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

// timedFlows returns the flows with their times from the timeline. A flow's schedule counts from its
// start.
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

// timelineProblems finds events with unknown names or in the wrong order, and changes that a link does
// not support.
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
			add(at+".at", "%v is before the event above it, at %v: write events in chronological order", e.At, t.Timeline[n-1].At)
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
			add(at, "an event has one action: write start or stop with the name of a flow or program, or link with set")
			continue
		}
		switch name := e.Start + e.Stop; {
		case e.Link != "":
			if !slices.Contains(links, e.Link) {
				add(at+".link", "unknown link %q: links are %s", e.Link, some(links))
			} else if e.Forward == nil && e.Back == nil {
				add(at+".set", "nothing is set: write for example set: {rate: 10Mbit}")
			}
			changeProblems(at, e, add)
		case !startable[name]:
			add(at, "unknown flow or program %q: add it, or correct the name", name)
		case bounded[name]:
			add(at, "flow %q has its own start or stop: leave that out, or the event", name)
		case e.Start != "" && (began[name] || ended[name]):
			add(at+".start", "%q was started or stopped before: it can run only once", name)
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

// changeProblems finds the errors in the new properties of a link.
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

// some joins names, up to a line of them.
func some(names []string) string {
	const maxNames = 8
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > maxNames:
		return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}
