package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"headgate/probe/schedule"
	"headgate/store"
)

// noSchedule is said where there is none.
func noSchedule() *Refusal {
	return refuse(http.StatusNotFound, "nothing is measured by a schedule: set one first")
}

func plainSchedule(s schedule.Schedule) schedule.Schedule { return s }

// GetProbeSchedule shows it.
func (s *Server) GetProbeSchedule(w http.ResponseWriter, r *http.Request) {
	var out schedule.Schedule
	doc, ok, err := s.Store.Get(r.Context(), store.ScheduleKey, 0)
	if err == nil && !ok {
		err = noSchedule()
	}
	if err == nil {
		err = doc.Into(&out)
	}
	show(w, r, out, err)
}

// PutProbeSchedule makes or changes it.
func (s *Server) PutProbeSchedule(w http.ResponseWriter, r *http.Request, _ PutProbeScheduleParams) {
	want, err := body[schedule.Schedule](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	want = want.Whole()
	s.change(w, r, store.ScheduleKey, func(c *call) (answer, error) {
		if _, err := current(c, store.ScheduleKey, plainSchedule); err != nil {
			return answer{}, err
		}
		// All hosts at once: an etcd that is another's has room for no more than some in a change.
		keys, err := c.tx.Keys(store.Prefix(store.Hosts))
		if err != nil {
			return answer{}, err
		}
		if err := checkSchedule(want, keys); err != nil {
			return answer{}, err
		}
		return put(c, store.ScheduleKey, want, plainSchedule)
	})
}

// checkSchedule refuses one that cannot be, or names a host that there is not.
func checkSchedule(want schedule.Schedule, hosts []string) error {
	out := &Refusal{Status: http.StatusUnprocessableEntity}
	for _, p := range want.Check() {
		out.Fields = append(out.Fields, Field{p.Field, p.Message})
	}
	named := map[string]string{} // where
	for _, p := range want.Pairs {
		named[p[0]], named[p[1]] = "pairs", "pairs"
	}
	for _, h := range want.Hosts {
		named[h.Host] = "hosts"
	}
	for name, where := range named {
		if !slices.Contains(hosts, store.Key(store.Hosts, name)) {
			out.Fields = append(out.Fields, Field{where, "there is no host " + name + ": make it first"})
		}
	}
	if len(want.Hosts)+len(want.Pairs) == 0 && len(hosts) > schedule.MostHosts {
		out.Fields = append(out.Fields, Field{"hosts", "there are too many hosts to measure each with each other: name some, or pairs"})
	}
	if len(out.Fields) == 0 {
		return nil
	}
	slices.SortFunc(out.Fields, func(a, b Field) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message)) })
	out.Detail = out.Fields[0].Field + ": " + out.Fields[0].Message
	return out
}

// DeleteProbeSchedule takes it away.
func (s *Server) DeleteProbeSchedule(w http.ResponseWriter, r *http.Request, _ DeleteProbeScheduleParams) {
	s.change(w, r, store.ScheduleKey, func(c *call) (answer, error) {
		if _, there, err := c.tx.Get(store.ScheduleKey, nil); err != nil {
			return answer{}, err
		} else if !there {
			return answer{}, noSchedule()
		}
		if _, err := current(c, store.ScheduleKey, plainSchedule); err != nil {
			return answer{}, err
		}
		c.tx.Delete(store.ScheduleKey)
		return gone, nil
	})
}

// probeState is what is under way.
type probeState struct {
	Running []probeRunning `json:"running"`
	Spent   []probeSpent   `json:"spent"`
	Day     string         `json:"day,omitempty"`
	Quiet   bool           `json:"quiet,omitempty"`
}

type probeRunning struct {
	ID string `json:"id"`
	schedule.Task
	Began time.Time `json:"began"`
}

type probeSpent struct {
	Host  string `json:"host"`
	Bytes string `json:"bytes"`
}

// GetProbeState shows what is being measured, and what that has cost.
func (s *Server) GetProbeState(w http.ResponseWriter, r *http.Request) {
	out := probeState{Running: []probeRunning{}, Spent: []probeSpent{}}
	// All of it at one revision, so that it goes together.
	docs, at, err := s.Store.All(r.Context(), store.Prefix(store.Probing, "runs"), 0)
	runs, err := into[store.ProbeRun](docs, err)
	for _, run := range runs {
		out.Running = append(out.Running, probeRunning{run.ID, run.Task, run.Began})
	}
	var want schedule.Schedule
	var there bool
	if err == nil {
		var doc store.Doc
		if doc, there, err = s.Store.Get(r.Context(), store.ScheduleKey, at); err == nil && there {
			err = doc.Into(&want)
		}
	}
	if err == nil && there {
		now := time.Now()
		out.Day, out.Quiet = want.Day(now), want.Silent(now, now.Add(want.Longest()))
		docs, _, err = s.Store.All(r.Context(), store.Prefix(store.Probing, "spent"), at)
		for _, d := range docs {
			var l schedule.Ledger
			if err == nil {
				err = d.Into(&l)
			}
			_, name := store.Name(d.Key)
			if spent := l.On(out.Day); spent > 0 {
				out.Spent = append(out.Spent, probeSpent{name[len(name)-1], spent.String()})
			}
		}
	}
	show(w, r, out, err)
}

// ListProbeResults lists what was measured.
func (s *Server) ListProbeResults(w http.ResponseWriter, r *http.Request, p ListProbeResultsParams) {
	kind := store.Probes
	if or(p.Newest, false) {
		kind = store.Newest
	}
	below := store.Prefix(kind)
	if p.From != nil {
		below = store.Prefix(kind, *p.From)
		if p.To != nil {
			below = store.Prefix(kind, *p.From, *p.To)
		}
	}
	out, err := list(r.Context(), s.Store, below, p.After, p.Limit, func(v store.ProbeResult) (store.ProbeResult, bool) {
		return v, (p.To == nil || v.To == *p.To) && (p.Measure == nil || v.Measure == string(*p.Measure)) && (p.Since == nil || !v.Tried.Before(*p.Since))
	})
	show(w, r, out, err)
}
