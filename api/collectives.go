package api

import (
	"net/http"
	"slices"

	"headgate/collective"
	"headgate/config"
	"headgate/store"
)

func collectiveOf(c store.Collective) Collective {
	return Collective{Name: &c.Name, Document: c.Document}
}

// ListCollectives lists a host's sets.
func (s *Server) ListCollectives(w http.ResponseWriter, r *http.Request, host string, p ListCollectivesParams) {
	out, err := list(r.Context(), s.Store, store.Prefix(store.Collectives, host), p.After, p.Limit, func(c store.Collective) (Collective, bool) { return collectiveOf(c), true })
	show(w, r, out, err)
}

// GetCollective shows one.
func (s *Server) GetCollective(w http.ResponseWriter, r *http.Request, host, name string) {
	v, err := get[store.Collective](s, r, store.Key(store.Collectives, host, name), "set", name)
	show(w, r, collectiveOf(v), err)
}

// ListCollectiveStates shows what a host's sets are doing: each that is wanted, and each that runs.
func (s *Server) ListCollectiveStates(w http.ResponseWriter, r *http.Request, host string) {
	if _, err := get[store.Host](s, r, store.Key(store.Hosts, host), "host", host); err != nil {
		problem(w, r, err)
		return
	}
	docs, _, err := s.Store.All(r.Context(), store.Prefix(store.Collectives, host), 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	out, err := s.Agents.Sets(r.Context(), host)
	silent := "its agent does not say what it is doing"
	if err != nil {
		silent = err.Error()
	}
	told := map[string]bool{}
	for _, state := range out.Items {
		told[state.Set] = true
	}
	for _, d := range docs {
		var c store.Collective
		if err := d.Into(&c); err != nil {
			problem(w, r, err)
			return
		}
		if !told[c.Name] {
			out.Items = append(out.Items, CollectiveState{Set: c.Name, Trouble: &silent, Connections: []CollectiveConnection{}})
		}
	}
	show(w, r, out, nil)
}

// PutCollective makes or changes one.
func (s *Server) PutCollective(w http.ResponseWriter, r *http.Request, host, name string, _ PutCollectiveParams) {
	want, err := body[Collective](r)
	var set collective.Policy
	if err == nil {
		set, err = oneSet(name, want.Document)
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	key := store.Key(store.Collectives, host, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		if _, err := current(c, key, collectiveOf); err != nil {
			return answer{}, err
		}
		if err := c.together(host, "document", set); err != nil {
			return answer{}, err
		}
		return put(c, key, store.Collective{Name: name, Document: want.Document}, collectiveOf)
	})
}

// oneSet is the set of a document, which has no other and is the one of that name.
func oneSet(name, document string) (collective.Policy, error) {
	set, err := config.Parse("document", []byte(document))
	if err != nil {
		return collective.Policy{}, wrong("document", err)
	}
	if len(set.Collectives) != 1 || len(set.Interfaces) > 0 || set.Collectives[0].Name != name {
		return collective.Policy{}, wrong("document", refuse(0, "write one document of kind: Collective with name: %s", name))
	}
	return set.Collectives[0].Policy, nil
}

// sets are those of documents, as far as this version can read them, in their order on a host.
func sets(documents []store.Collective) (out []collective.Policy) {
	for _, d := range documents {
		if p, err := oneSet(d.Name, d.Document); err == nil {
			out = append(out, p)
		}
	}
	config.Orderly(out)
	return out
}

// together refuses sets for which another of the host leaves no connection.
func (c *call) together(host, field string, fresh ...collective.Policy) error {
	there, err := into[store.Collective](c.tx.All(store.Prefix(store.Collectives, host)))
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(sets(there), func(p collective.Policy) bool {
		return slices.ContainsFunc(fresh, func(f collective.Policy) bool { return f.Name == p.Name })
	})
	for _, f := range fresh {
		for _, p := range all {
			if whole := len(f.Rules) == 0 && len(p.Rules) == 0; whole && f.Cgroup+f.Unit != "" && f.Cgroup == p.Cgroup && f.Unit == p.Unit {
				return wrong(field, refuse(0, "the set %s: all connections of %s are in the set %s already: give one of them rules (match)", f.Name, f.Cgroup+f.Unit, p.Name))
			}
		}
	}
	return nil
}

// DeleteCollective removes one.
func (s *Server) DeleteCollective(w http.ResponseWriter, r *http.Request, host, name string, _ DeleteCollectiveParams) {
	key := store.Key(store.Collectives, host, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		if _, err := existing(c, key, "set", name, collectiveOf); err != nil {
			return answer{}, err
		}
		c.tx.Delete(key)
		return gone, nil
	})
}
