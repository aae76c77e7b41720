package schedule

import (
	"slices"
	"time"

	"headgate.dev/headgate/unit"
)

// State has the past measurements and those in progress.
type State struct {
	// Hosts are all known hosts.
	Hosts []string
	// Last is the last measurement of each task.
	Last map[Task]Last
	// Running are the measurements in progress.
	Running []Run
	// Ledgers is the ledger of each host.
	Ledgers map[string]Ledger
	// Unavailable are the hosts that cannot measure now.
	Unavailable map[string]bool
}

// Last is the time of a task's last measurement, and the number of failures since the
// last success.
type Last struct {
	At     time.Time `json:"at"`
	Failed int       `json:"failed,omitempty"`
}

// Run is a measurement in progress. Reserved is charged to the budget of Day at both
// hosts.
type Run struct {
	Task
	Day      string     `json:"day"`
	Reserved unit.Bytes `json:"reserved"`
}

// Next returns the tasks that begin now.
func (s *Schedule) Next(now time.Time, st State) (start []Task) {
	if s.InQuietHours(now, now) {
		return nil
	}
	used := map[string]bool{}
	for _, r := range st.Running {
		s.take(used, r.Task)
	}
	for _, t := range s.due(now, st) {
		switch {
		case len(st.Running)+len(start) >= maxConcurrent:
			return start
		case st.Unavailable[t.From] || st.Unavailable[t.To] || !s.withinBudget(t, st, now) || s.InQuietHours(now, now.Add(s.duration(t.Measure))):
			continue // it blocks no other task
		case slices.ContainsFunc(s.needs(t), func(n string) bool { return used[n] }):
			s.take(used, t) // reserve all that it needs, also what is free now
			continue
		}
		s.take(used, t)
		start = append(start, t) // each host at most once, so the ledgers stay valid
	}
	return start
}

// due returns the tasks that are due, in the order in which they became due.
func (s *Schedule) due(now time.Time, st State) (tasks []Task) {
	since := map[Task]time.Time{} // the zero time marks a task that was never measured
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

// pause returns the time until the task is due again.
func (l Last) pause(every time.Duration) time.Duration {
	if l.Failed == 0 {
		return every
	}
	return min(every, retryDelay<<min(l.Failed-1, 16))
}

// needs returns the hosts and links that no other measurement may use at the same time.
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

// CanStart reports whether a task may begin now, given the running measurements and the
// ledgers.
func (s *Schedule) CanStart(now time.Time, t Task, st State) bool {
	used := map[string]bool{}
	for _, r := range st.Running {
		s.take(used, r.Task)
	}
	return !s.InQuietHours(now, now.Add(s.duration(t.Measure))) && len(st.Running) < maxConcurrent && s.withinBudget(t, st, now) &&
		!slices.ContainsFunc(s.needs(t), func(n string) bool { return used[n] })
}

// withinBudget reports whether the budgets of both hosts allow one more measurement.
func (s *Schedule) withinBudget(t Task, st State, now time.Time) bool {
	day := s.Day(now)
	return st.Ledgers[t.From].On(day)+s.Cost(t.Measure) <= s.Budget && st.Ledgers[t.To].On(day)+s.Cost(t.Measure) <= s.Budget
}
