package schedule

import (
	"slices"
	"time"

	"headgate/unit"
)

// State is what was, and what is under way.
type State struct {
	// Hosts are all that there are.
	Hosts []string
	// Last is when each task was measured last.
	Last map[Task]Last
	// Running are the measurements under way.
	Running []Run
	// Spent is by host.
	Spent map[string]Ledger
	// Away are hosts that cannot measure now.
	Away map[string]bool
}

// Last is when a task was measured last, and how often it has failed since it did not.
type Last struct {
	At     time.Time `json:"at"`
	Failed int       `json:"failed,omitempty"`
}

// Run is a measurement under way: it began on a day, whose budget has so much reserved for it at
// both hosts.
type Run struct {
	Task
	Day      string     `json:"day"`
	Reserved unit.Bytes `json:"reserved"`
}

// Next are the tasks that begin now.
func (s *Schedule) Next(now time.Time, st State) (start []Task) {
	if s.Silent(now, now.Add(s.Longest())) {
		return nil
	}
	used := map[string]bool{}
	for _, r := range st.Running {
		s.take(used, r.Task)
	}
	for _, t := range s.due(now, st) {
		switch {
		case len(st.Running)+len(start) >= mostAtOnce:
			return start
		case st.Away[t.From] || st.Away[t.To] || !s.affords(t, st, now):
			continue // it keeps nobody waiting
		case slices.ContainsFunc(s.needs(t), func(n string) bool { return used[n] }):
			s.take(used, t) // it is next where it waits, and so where it does not
			continue
		}
		s.take(used, t)
		start = append(start, t) // each host once, so that what is spent stays
	}
	return start
}

// due are the tasks that are to be measured, in the order in which they became so.
func (s *Schedule) due(now time.Time, st State) (tasks []Task) {
	since := map[Task]time.Time{} // the zero time is of one that was never measured
	for _, t := range s.Tasks(st.Hosts) {
		at := time.Time{}
		if l, ok := st.Last[t]; ok {
			at = l.At.Add(l.pause(s.every(t.Measure)))
		}
		if !at.After(now) {
			since[t] = at
			tasks = append(tasks, t)
		}
	}
	slices.SortStableFunc(tasks, func(a, b Task) int { return since[a].Compare(since[b]) })
	return tasks
}

// pause is until it is measured again.
func (l Last) pause(every time.Duration) time.Duration {
	if l.Failed == 0 {
		return every
	}
	return min(every, again<<min(l.Failed-1, 16))
}

// needs are what no other measurement may use meanwhile.
func (s *Schedule) needs(t Task) (all []string) {
	for _, name := range []string{t.From, t.To} {
		all = append(all, "host "+name)
		for _, l := range s.Host(name).Links {
			all = append(all, "link "+l)
		}
	}
	return all
}

func (s *Schedule) take(used map[string]bool, t Task) {
	for _, n := range s.needs(t) {
		used[n] = true
	}
}

// May tells whether a task may begin now, as far as what is under way and what was spent say.
func (s *Schedule) May(now time.Time, t Task, st State) bool {
	used := map[string]bool{}
	for _, r := range st.Running {
		s.take(used, r.Task)
	}
	return !s.Silent(now, now.Add(s.Longest())) && len(st.Running) < mostAtOnce && s.affords(t, st, now) &&
		!slices.ContainsFunc(s.needs(t), func(n string) bool { return used[n] })
}

// affords tells whether the budget of both hosts has room for one more.
func (s *Schedule) affords(t Task, st State, now time.Time) bool {
	day := s.Day(now)
	return st.Spent[t.From].On(day)+s.Cost() <= s.Budget && st.Spent[t.To].On(day)+s.Cost() <= s.Budget
}
