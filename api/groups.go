package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"headgate/group"
	"headgate/store"
	"headgate/unit"
)

// groupState is a group with what it has.
type groupState struct {
	groupDoc
	Path string    `json:"path"`
	Rate unit.Rate `json:"rate"`
	Most unit.Rate `json:"most,omitempty"`
	Free unit.Rate `json:"free"`
}

// place is where a group is.
type place struct{ host, dev, direction, path string }

func (p place) key() string { return p.direction + "/" + p.path }

// sees tells whether one may see a group.
func sees(i *store.Interface, at place, by store.Token) bool {
	return by.Tenant == "" || i.Owner(at.direction, at.path) == by.Tenant
}

// changes refuses a change that is not one's own to make: a tenant changes what is in its groups,
// and these themselves are the operator's.
func changes(i *store.Interface, at place, by store.Token) error {
	if by.Tenant == "" {
		return nil
	}
	parent, _ := group.Split(at.path)
	if parent != "" && i.Owner(at.direction, parent) == by.Tenant {
		return nil
	}
	if sees(i, at, by) {
		return refuse(http.StatusForbidden, "the group %s is the operator's to change: what is in it is yours", at.path)
	}
	return notFound("group", at.path)
}

// states are the groups of a direction with what they have, parents first.
func states(i *store.Interface, direction string, by store.Token) ([]groupState, error) {
	d := i.Direction(direction)
	if d == nil {
		return nil, nil
	}
	tree, problems := d.Resolve(direction, true)
	if len(problems) > 0 {
		return nil, fmt.Errorf("interface %s: %w", i.Dev, problems[0])
	}
	free := make([]unit.Rate, len(tree.Nodes))
	for n, node := range tree.Nodes {
		free[n] += node.Guarantee
		if node.Parent >= 0 {
			free[node.Parent] -= min(free[node.Parent], node.Guarantee)
		}
	}
	var out []groupState
	for n, node := range tree.Nodes {
		at := place{direction: direction, path: node.Path}
		if !sees(i, at, by) {
			continue
		}
		g := *d.At(node.Path)
		out = append(out, groupState{seen(i, direction, node.Path, g, by), node.Path, node.Guarantee, node.Ceiling, free[n]})
	}
	return out, nil
}

// state is one group; false if there is none that the caller may see.
func state(i *store.Interface, at place, by store.Token) (groupState, bool, error) {
	d := i.Direction(at.direction)
	if d == nil || d.At(at.path) == nil || !sees(i, at, by) {
		return groupState{}, false, nil
	}
	all, err := states(i, at.direction, by)
	for _, g := range all {
		if g.Path == at.path {
			return g, true, nil
		}
	}
	return groupState{}, false, err
}

// ListGroups lists those that the caller may see.
func (s *Server) ListGroups(w http.ResponseWriter, r *http.Request, host, dev string, direction PathDirection, p ListGroupsParams) {
	i, err := s.readInterface(r, host, dev, 0)
	var all []groupState
	if err == nil {
		all, err = states(i, string(direction), principalOf(r))
	}
	for n := range all {
		all[n].Groups = nil // each has its own line
	}
	var out page[groupState]
	if err == nil {
		out, err = cut(all, func(g groupState) string { return g.Path }, p.After, p.Limit)
	}
	show(w, r, out, err)
}

// GetGroup shows one.
func (s *Server) GetGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction PathDirection, path string) {
	i, err := s.readInterface(r, host, dev, 0)
	var out groupState
	if err == nil {
		var ok bool
		if out, ok, err = state(i, place{host, dev, string(direction), path}, principalOf(r)); err == nil && !ok {
			err = notFound("group", path)
		}
	}
	show(w, r, out, err)
}

// changeGroup has one group changed: change makes it another, or a new one if it is nil.
func (s *Server) changeGroup(w http.ResponseWriter, r *http.Request, at place, change func(c *call, i *store.Interface, g *group.Group) error) {
	s.change(w, r, ledger(at.host, at.dev), func(c *call) (answer, error) {
		i, there, err := c.interfaceAt(at.host, at.dev)
		if err != nil {
			return answer{}, err
		}
		c.resource += "/" + at.key()
		d := i.Direction(at.direction)
		parent, _ := group.Split(at.path)
		if !there || d == nil || c.by.Tenant != "" && !i.HasTenant(c.by.Tenant) {
			return answer{}, notFound("interface", at.dev)
		}
		if err := changes(i, at, c.by); err != nil {
			return answer{}, err
		}
		if parent != "" && d.At(parent) == nil {
			return answer{}, notFound("group", parent)
		}
		before, exists, err := state(i, at, c.by)
		if err != nil {
			return answer{}, err
		}
		var current any
		if exists {
			current = before
		}
		if err := c.matches(current); err != nil {
			return answer{}, err
		}
		next := i.Clone()
		if err := change(c, next, next.Direction(at.direction).At(at.path)); err != nil {
			return answer{}, err
		}
		next.Connections = stay(next.Connections, next)
		if err := check(next, problemsOf(next, at, c.by)); err != nil {
			return answer{}, err
		}
		if err := c.tenants(next); err != nil {
			return answer{}, err
		}
		if err := capGroups(i, next, at.direction, c.by.Tenant); err != nil {
			return answer{}, err
		}
		if err := c.save(at.host, next); err != nil {
			return answer{}, err
		}
		now, exists, err := state(next, at, c.by)
		if err != nil || !exists {
			return gone, err
		}
		return shows(http.StatusOK, now)
	})
}

// PutGroup makes a group, or makes it what is said.
func (s *Server) PutGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction PathDirection, path string, _ PutGroupParams) {
	doc, err := body[groupDoc](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	at := place{host, dev, string(direction), path}
	parent, name := group.Split(path)
	doc.Name = name
	s.changeGroup(w, r, at, func(c *call, i *store.Interface, g *group.Group) error {
		if err := own(c, doc); err != nil {
			return err
		}
		kept := i.Owners[at.key()]
		i.Disown(at.direction, path)
		if c.by.Tenant != "" {
			i.Own(at.direction, path, kept)
		}
		next := meant(i, at.direction, path, doc)
		if g != nil {
			*g = next
			return nil
		}
		i.Direction(at.direction).Add(parent, next)
		return nil
	})
}

// own refuses a tenant that says whose groups are to be.
func own(c *call, d groupDoc) error {
	if c.by.Tenant == "" {
		return nil
	}
	if d.Tenant != "" {
		return &Refusal{Status: http.StatusForbidden, Detail: "whose a group is is the operator's to say", Fields: []Field{{"tenant", "leave it out"}}}
	}
	for _, child := range d.Groups {
		if err := own(c, child); err != nil {
			return err
		}
	}
	return nil
}

// PatchGroup changes some of a group (RFC 7396).
func (s *Server) PatchGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction PathDirection, path string, _ PatchGroupParams) {
	patch, err := body[map[string]json.RawMessage](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	at := place{host, dev, string(direction), path}
	s.changeGroup(w, r, at, func(c *call, i *store.Interface, g *group.Group) error {
		if g == nil {
			return notFound("group", path)
		}
		for name, value := range patch {
			if name == "tenant" {
				if c.by.Tenant != "" {
					return own(c, groupDoc{Tenant: "x"})
				}
				var t string
				if err := json.Unmarshal(value, &t); err != nil {
					return wrong(name, err)
				}
				i.Own(at.direction, path, t)
				continue
			}
			if err := set(g, name, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// set changes one field of a group; null is that it is not given.
func set(g *group.Group, name string, value json.RawMessage) error {
	if string(value) == "null" {
		switch name {
		case "guarantee":
			g.Guarantee = group.Amount{}
		case "ceiling":
			g.Ceiling = group.Amount{}
		case "priority":
			g.Priority = 0
		case "match":
			g.Match = nil
		case "default":
			g.Default = false
		case "join":
			g.Join = nil
		case "each":
			g.Each = group.Each{}
		case "clients":
			g.Clients = 0
		}
		return nil
	}
	to := map[string]any{"guarantee": &g.Guarantee, "ceiling": &g.Ceiling, "priority": &g.Priority, "match": &g.Match, "default": &g.Default, "join": &g.Join,
		"each": &g.Each, "clients": &g.Clients}[name]
	switch name { // a list is replaced
	case "match":
		g.Match = nil
	case "join":
		g.Join = nil
	}
	if err := json.Unmarshal(value, to); err != nil {
		return wrong(name, err)
	}
	return nil
}

// DeleteGroup removes one with what is in it.
func (s *Server) DeleteGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction PathDirection, path string, _ DeleteGroupParams) {
	at := place{host, dev, string(direction), path}
	s.changeGroup(w, r, at, func(c *call, i *store.Interface, g *group.Group) error {
		if g == nil {
			return notFound("group", path)
		}
		i.Direction(at.direction).Remove(path)
		i.Disown(at.direction, path)
		return nil
	})
}

// problemsOf tells of problems as the one who changes a group may know them: an operator all, by
// the interface's fields, a tenant those of its own groups, by their paths.
func problemsOf(i *store.Interface, at place, by store.Token) func(group.Problem) (Field, bool) {
	if by.Tenant == "" {
		return plainly
	}
	return func(p group.Problem) (Field, bool) {
		direction, path, rest := pathOf(i, p.Where)
		if direction == "" || path == "" || i.Owner(direction, path) != by.Tenant {
			return Field{}, false
		}
		field := strings.TrimPrefix(strings.TrimPrefix(direction+"/"+path, at.key()), "/")
		return Field{strings.Trim(field+"."+rest, "."), p.Message}, true
	}
}

// pathOf turns a problem's place, "out.groups[1].groups[0].guarantee", into the direction, the
// path of the group and the rest.
func pathOf(i *store.Interface, where string) (direction, path, rest string) {
	direction, rest, _ = strings.Cut(where, ".")
	d := (*group.Direction)(nil)
	if direction == "out" || direction == "in" {
		d = i.Direction(direction)
	}
	if d == nil {
		return "", "", where
	}
	groups := d.Groups
	for {
		var n int
		if _, err := fmt.Sscanf(rest, "groups[%d]", &n); err != nil || n >= len(groups) {
			return direction, path, rest
		}
		path = strings.TrimPrefix(path+"/"+groups[n].Name, "/")
		groups = groups[n].Groups
		_, rest, _ = strings.Cut(rest, "]")
		rest = strings.TrimPrefix(rest, ".")
	}
}
