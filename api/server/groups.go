package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// groupState is a group with its resolved rates.
type groupState struct {
	groupDoc
	Path           string `json:"path"`
	GuaranteedBps  int64  `json:"guaranteed_bps"`        // the guarantee
	CeilingBps     int64  `json:"ceiling_bps,omitempty"` // the ceiling
	UnallocatedBps int64  `json:"unallocated_bps"`       // the unallocated part of the guarantee
	// Origin replaces the field of group.Group: it is always shown, and only here, because requests do
	// not set it.
	Origin group.Origin `json:"origin"`
}

// groupRef is the location of a group: host, device, direction and path.
type groupRef struct{ host, dev, direction, path string }

// key is the key of the group in store.Interface.Owners, such as "out/web".
func (p groupRef) key() string { return p.direction + "/" + p.path }

// canSee reports whether the caller may see a group.
func canSee(i *store.Interface, at groupRef, by store.Token) bool {
	return by.Tenant == "" || i.Owner(at.direction, at.path) == by.Tenant
}

// checkMayChange refuses a change for which the caller has no permission. A tenant may change the groups inside
// the groups that the operator assigned to it, but not the assigned groups themselves.
func checkMayChange(i *store.Interface, at groupRef, by store.Token) error {
	if by.Tenant == "" {
		return nil
	}
	parent, _ := group.Split(at.path)
	if parent != "" && i.Owner(at.direction, parent) == by.Tenant {
		return nil
	}
	if canSee(i, at, by) {
		return refuse(http.StatusForbidden, "the group %s can only be changed by an operator: you can change the groups in it", at.path)
	}
	return notFound("group", at.path)
}

// groupStates returns the groups of a direction that the caller may see, with their resolved rates, parents
// first.
func groupStates(i *store.Interface, direction string, by store.Token) ([]groupState, error) {
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
		at := groupRef{direction: direction, path: node.Path}
		if !canSee(i, at, by) {
			continue
		}
		g := *d.Find(node.Path)
		out = append(out, groupState{groupForCaller(i, direction, node.Path, g, by), node.Path, int64(node.Guarantee), int64(node.Ceiling), int64(free[n]), g.Origin})
	}
	return out, nil
}

// groupStateAt returns one group; false if there is no such group or the caller may not see it.
func groupStateAt(i *store.Interface, at groupRef, by store.Token) (groupState, bool, error) {
	d := i.Direction(at.direction)
	if d == nil || d.Find(at.path) == nil || !canSee(i, at, by) {
		return groupState{}, false, nil
	}
	all, err := groupStates(i, at.direction, by)
	for _, g := range all {
		if g.Path == at.path {
			return g, true, nil
		}
	}
	return groupState{}, false, err
}

// ListGroups lists the groups that the caller may see.
func (s *Server) ListGroups(w http.ResponseWriter, r *http.Request, host, dev string, direction api.PathDirection, p api.ListGroupsParams) {
	i, err := s.readInterface(r, host, dev, 0)
	var all []groupState
	if err == nil {
		all, err = groupStates(i, string(direction), principalOf(r))
	}
	for n := range all {
		all[n].Groups = nil // every group is an item of its own
	}
	var out page[groupState]
	if err == nil {
		out, err = pageOf(all, func(g groupState) string { return g.Path }, p.After, p.Limit)
	}
	writeResource(w, r, out, err)
}

// GetGroup shows one group.
func (s *Server) GetGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction api.PathDirection, path string) {
	i, err := s.readInterface(r, host, dev, 0)
	var out groupState
	if err == nil {
		var ok bool
		if out, ok, err = groupStateAt(i, groupRef{host, dev, string(direction), path}, principalOf(r)); err == nil && !ok {
			err = notFound("group", path)
		}
	}
	writeResource(w, r, out, err)
}

// changeGroup changes one group in a transaction. change gets a copy of the interface and the group in
// it, nil if the group does not exist yet.
func (s *Server) changeGroup(w http.ResponseWriter, r *http.Request, at groupRef, change func(c *changeRequest, i *store.Interface, g *group.Group) error) {
	s.change(w, r, interfaceKey(at.host, at.dev), func(c *changeRequest) (response, error) {
		i, there, err := c.interfaceAt(at.host, at.dev)
		if err != nil {
			return response{}, err
		}
		c.resource += "/" + at.key()
		d := i.Direction(at.direction)
		parent, _ := group.Split(at.path)
		if !there || d == nil || c.by.Tenant != "" && !i.HasTenant(c.by.Tenant) {
			return response{}, notFound("interface", at.dev)
		}
		if err := checkMayChange(i, at, c.by); err != nil {
			return response{}, err
		}
		if parent != "" && d.Find(parent) == nil {
			return response{}, notFound("group", parent)
		}
		before, exists, err := groupStateAt(i, at, c.by)
		if err != nil {
			return response{}, err
		}
		var current any
		if exists {
			current = before
		}
		if err := c.checkIfMatch(current); err != nil {
			return response{}, err
		}
		next := i.Clone()
		if err := change(c, next, next.Direction(at.direction).Find(at.path)); err != nil {
			return response{}, err
		}
		origin := group.OriginFile
		if c.by.Tenant != "" {
			origin = group.OriginTenant
		}
		setOrigins(i, next, origin)
		next.Connections = assignableConnections(next.Connections, next)
		if err := checkInterface(next, fieldsFor(next, at, c.by)); err != nil {
			return response{}, err
		}
		if err := c.requireTenants(next); err != nil {
			return response{}, err
		}
		if err := checkGroupQuotas(i, next, at.direction, c.by.Tenant); err != nil {
			return response{}, err
		}
		if err := c.saveInterface(at.host, next); err != nil {
			return response{}, err
		}
		now, exists, err := groupStateAt(next, at, c.by)
		if err != nil || !exists {
			return noContent, err
		}
		return respondWith(http.StatusOK, now)
	})
}

// PutGroup creates or replaces a group.
func (s *Server) PutGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction api.PathDirection, path string, _ api.PutGroupParams) {
	doc, err := parseBody[groupDoc](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	at := groupRef{host, dev, string(direction), path}
	parent, name := group.Split(path)
	doc.Name = name
	s.changeGroup(w, r, at, func(c *changeRequest, i *store.Interface, g *group.Group) error {
		if err := refuseTenantField(c, doc); err != nil {
			return err
		}
		kept := i.Owners[at.key()]
		i.RemoveOwners(at.direction, path)
		if c.by.Tenant != "" {
			i.SetOwner(at.direction, path, kept)
		}
		next := groupFromRequest(i, at.direction, path, doc)
		if g != nil {
			*g = next
			return nil
		}
		i.Direction(at.direction).Add(parent, next)
		return nil
	})
}

// refuseTenantField refuses a tenant's request that sets the tenant of a group.
func refuseTenantField(c *changeRequest, d groupDoc) error {
	if c.by.Tenant == "" {
		return nil
	}
	if d.Tenant != "" {
		return &Refusal{Status: http.StatusForbidden, Detail: "only an operator can set the tenant of a group", Fields: []Field{{"tenant", "omit this field"}}}
	}
	for _, child := range d.Groups {
		if err := refuseTenantField(c, child); err != nil {
			return err
		}
	}
	return nil
}

// PatchGroup changes some fields of a group (RFC 7396).
func (s *Server) PatchGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction api.PathDirection, path string, _ api.PatchGroupParams) {
	patch, err := parseBody[map[string]json.RawMessage](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	at := groupRef{host, dev, string(direction), path}
	s.changeGroup(w, r, at, func(c *changeRequest, i *store.Interface, g *group.Group) error {
		if g == nil {
			return notFound("group", path)
		}
		for name, value := range patch {
			if name == "tenant" {
				if c.by.Tenant != "" {
					return refuseTenantField(c, groupDoc{Tenant: "x"})
				}
				var t string
				if err := json.Unmarshal(value, &t); err != nil {
					return invalidField(name, err)
				}
				i.SetOwner(at.direction, path, t)
				continue
			}
			if err := set(g, name, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// set changes one field of a group. The value null resets the field.
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
		return invalidField(name, err)
	}
	return nil
}

// DeleteGroup deletes a group with the groups in it.
func (s *Server) DeleteGroup(w http.ResponseWriter, r *http.Request, host, dev string, direction api.PathDirection, path string, _ api.DeleteGroupParams) {
	at := groupRef{host, dev, string(direction), path}
	s.changeGroup(w, r, at, func(c *changeRequest, i *store.Interface, g *group.Group) error {
		if g == nil {
			return notFound("group", path)
		}
		i.Direction(at.direction).Remove(path)
		i.RemoveOwners(at.direction, path)
		return nil
	})
}

// fieldsFor returns a function that turns a problem into a field of the refusal, and reports whether the
// caller may see the problem. An operator sees all problems, by the fields of the interface. A tenant
// sees the problems of its own groups, by their paths.
func fieldsFor(i *store.Interface, at groupRef, by store.Token) func(group.Problem) (Field, bool) {
	if by.Tenant == "" {
		return operatorField
	}
	return func(p group.Problem) (Field, bool) {
		direction, path, rest := i.Locate(p.Where)
		if direction == "" || path == "" || i.Owner(direction, path) != by.Tenant {
			return Field{}, false
		}
		field := strings.TrimPrefix(strings.TrimPrefix(direction+"/"+path, at.key()), "/")
		return Field{strings.Trim(field+"."+rest, "."), p.Message}, true
	}
}
