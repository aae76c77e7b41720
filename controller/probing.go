package controller

import (
	"maps"
	"slices"

	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
)

// probing is the store's state of scheduled measurements.
type probing struct {
	schedule *schedule.Schedule // nil without a schedule
	runs     map[string]store.ProbeRun
	last     map[schedule.Task]schedule.Last
	spent    map[string]schedule.Ledger // by host
}

func newProbing() probing {
	return probing{runs: map[string]store.ProbeRun{}, last: map[schedule.Task]schedule.Last{}, spent: map[string]schedule.Ledger{}}
}

// put stores a document, or removes it if its value is nil. name is the key without the kind.
func (p *probing) put(name []string, d store.Doc) error {
	switch {
	case len(name) == 1 && name[0] == "schedule":
		p.schedule = nil
		if d.Value == nil {
			return nil
		}
		p.schedule = &schedule.Schedule{}
		return d.Into(p.schedule)
	case len(name) == 2 && name[0] == "runs":
		return keep(p.runs, name[1], d)
	case len(name) == 4 && name[0] == "last":
		return keep(p.last, schedule.Task{From: name[1], To: name[2], Measure: name[3]}, d)
	case len(name) == 2 && name[0] == "spent":
		return keep(p.spent, name[1], d)
	}
	return nil
}

func keep[K comparable, V any](in map[K]V, name K, d store.Doc) error {
	if d.Value == nil {
		delete(in, name)
		return nil
	}
	var v V
	err := d.Into(&v)
	if err == nil {
		in[name] = v
	}
	return err
}

// runs returns the running measurements.
func (c *cache) runs() map[string]store.ProbeRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.probing.runs)
}

// measurements returns a copy of the state of scheduled measurements, and the hosts that are not
// revoked. Both are empty without a schedule and running measurements.
func (c *cache) measurements() (p probing, hosts []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probing.schedule == nil && len(c.probing.runs) == 0 {
		return p, nil
	}
	for name, h := range c.hosts {
		if h.host != nil && !h.host.Revoked {
			hosts = append(hosts, name)
		}
	}
	slices.Sort(hosts)
	return probing{c.probing.schedule, maps.Clone(c.probing.runs), maps.Clone(c.probing.last), maps.Clone(c.probing.spent)}, hosts
}
