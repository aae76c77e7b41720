package server

import (
	"net/http"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/store"
)

// collectiveOf returns the API form of a connection set.
func collectiveOf(c store.Collective) api.Collective {
	return api.Collective{Name: &c.Name, Document: c.Document}
}

// ListCollectives lists the connection sets of a host.
func (s *Server) ListCollectives(w http.ResponseWriter, r *http.Request, host string, p api.ListCollectivesParams) {
	out, err := listPage(r.Context(), s.Store, store.Prefix(store.Collectives, host), p.After, p.Limit, func(c store.Collective) (api.Collective, bool) { return collectiveOf(c), true })
	writeResource(w, r, out, err)
}

// GetCollective shows one connection set.
func (s *Server) GetCollective(w http.ResponseWriter, r *http.Request, host, name string) {
	v, err := get[store.Collective](s, r, store.Key(store.Collectives, host, name), notFound("connection set", name))
	writeResource(w, r, collectiveOf(v), err)
}

// ListCollectiveStates lists the states of a host's connection sets: the configured ones and the running ones.
func (s *Server) ListCollectiveStates(w http.ResponseWriter, r *http.Request, host string) {
	if _, err := get[store.Host](s, r, store.Key(store.Hosts, host), notFound("host", host)); err != nil {
		problem(w, r, err)
		return
	}
	docs, _, err := s.Store.All(r.Context(), store.Prefix(store.Collectives, host), 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	out, err := s.Agents.Sets(r.Context(), host)
	_, connected := s.Agents.State(host)
	out.Connected = &connected
	noState := "the agent did not report the state of this connection set"
	if err != nil {
		noState = err.Error()
	}
	reported := map[string]bool{}
	for _, state := range out.Items {
		reported[state.Set] = true
	}
	for _, d := range docs {
		var c store.Collective
		if err := d.Into(&c); err != nil {
			problem(w, r, err)
			return
		}
		if !reported[c.Name] {
			out.Items = append(out.Items, api.CollectiveState{Set: c.Name, Error: &noState, Connections: []api.CollectiveConnection{}})
		}
	}
	writeResource(w, r, out, nil)
}

// PutCollective creates or replaces a connection set.
func (s *Server) PutCollective(w http.ResponseWriter, r *http.Request, host, name string, _ api.PutCollectiveParams) {
	want, err := parseBody[api.Collective](r)
	var set collective.Policy
	if err == nil {
		set, err = parseSet(name, want.Document)
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	key := store.Key(store.Collectives, host, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		if err := c.requireHost(host); err != nil {
			return response{}, err
		}
		if _, err := readCurrent(c, key, collectiveOf); err != nil {
			return response{}, err
		}
		if err := c.checkSetOverlap(host, "document", set); err != nil {
			return response{}, err
		}
		return put(c, key, store.Collective{Name: name, Document: want.Document}, collectiveOf)
	})
}

// parseSet parses a document that must contain exactly one connection set, with the given name.
func parseSet(name, document string) (collective.Policy, error) {
	set, err := config.Parse("document", []byte(document))
	if err != nil {
		return collective.Policy{}, invalidField("document", err)
	}
	if len(set.Collectives) != 1 || len(set.Interfaces) > 0 || set.Collectives[0].Name != name {
		return collective.Policy{}, invalidField("document", refuse(0, "expected one document of kind: Collective with name: %s", name))
	}
	return set.Collectives[0].Policy, nil
}

// parseSets parses documents and returns their connection sets in the order in which a host applies them.
// Documents that this version cannot parse are left out.
func parseSets(documents []store.Collective) (out []collective.Policy) {
	for _, d := range documents {
		if p, err := parseSet(d.Name, d.Document); err == nil {
			out = append(out, p)
		}
	}
	config.SortPolicies(out)
	return out
}

// checkSetOverlap refuses a connection set that would get no connection because another set of the host takes
// all connections of the same cgroup or unit.
func (c *changeRequest) checkSetOverlap(host, field string, fresh ...collective.Policy) error {
	there, err := decodeDocs[store.Collective](c.tx.All(store.Prefix(store.Collectives, host)))
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(parseSets(there), func(p collective.Policy) bool {
		return slices.ContainsFunc(fresh, func(f collective.Policy) bool { return f.Name == p.Name })
	})
	for _, f := range fresh {
		for _, p := range all {
			if whole := len(f.Rules) == 0 && len(p.Rules) == 0; whole && f.Cgroup+f.Unit != "" && f.Cgroup == p.Cgroup && f.Unit == p.Unit {
				return invalidField(field, refuse(0, "connection set %s: all connections of %s belong to the set %s: give one of the sets rules (match)", f.Name, f.Cgroup+f.Unit, p.Name))
			}
		}
	}
	return nil
}

// DeleteCollective deletes a connection set.
func (s *Server) DeleteCollective(w http.ResponseWriter, r *http.Request, host, name string, _ api.DeleteCollectiveParams) {
	key := store.Key(store.Collectives, host, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		if _, err := readExisting(c, key, notFound("connection set", name), collectiveOf); err != nil {
			return response{}, err
		}
		c.tx.Delete(key)
		return noContent, nil
	})
}
