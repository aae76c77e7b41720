package server

import (
	"encoding/json"
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// interfaceKey is the store key of an interface, and the ledger on which its changes are serialized.
func interfaceKey(host, dev string) string { return store.Key(store.Interfaces, host, dev) }

// groupDoc is the API form of a group: the group of package group with its tenant.
type groupDoc struct {
	group.Group
	Tenant string     `json:"tenant,omitempty"`
	Groups []groupDoc `json:"groups,omitempty"` // replaces the field of group.Group
}

// directionDoc is the API form of a direction.
type directionDoc struct {
	Limit  json.RawMessage `json:"limit"`
	Spare  group.Spare     `json:"spare,omitempty"`
	Groups []groupDoc      `json:"groups"`
}

// interfaceDoc is the API form of an interface.
type interfaceDoc struct {
	Dev         string            `json:"dev,omitempty"`
	Perspective group.Perspective `json:"perspective,omitempty"`
	Engine      group.Engine      `json:"engine,omitempty"`
	Quantum     string            `json:"quantum,omitempty"`
	Step        *group.Step       `json:"step,omitempty"`
	Overdraft   bool              `json:"overdraft,omitempty"`
	Overhead    *overheadDoc      `json:"overhead,omitempty"`
	GSO         group.GSO         `json:"gso,omitempty"`
	Out         *directionDoc     `json:"out,omitempty"`
	In          *directionDoc     `json:"in,omitempty"`
}

// overheadDoc is the API form of group.Overhead. Each field may be omitted.
type overheadDoc struct {
	Frame   string `json:"frame,omitempty"`
	Minimum string `json:"minimum,omitempty"`
}

// groupForCaller returns the API form of a group, with the groups in it, for one caller. Only operators get the
// names of tenants.
func groupForCaller(i *store.Interface, direction, path string, g group.Group, by store.Token) groupDoc {
	out := groupDoc{Group: g}
	out.Group.Groups, out.Group.Origin = nil, group.OriginFile
	if by.Tenant == "" {
		out.Tenant = i.Owners[direction+"/"+path]
	}
	for _, child := range g.Groups {
		out.Groups = append(out.Groups, groupForCaller(i, direction, path+"/"+child.Name, child, by))
	}
	return out
}

// groupFromRequest converts a group of a request, with the groups in it, and sets their tenants in i.
func groupFromRequest(i *store.Interface, direction, path string, d groupDoc) group.Group {
	g := d.Group
	g.Groups = nil
	if d.Tenant != "" {
		i.SetOwner(direction, path, d.Tenant)
	}
	for _, child := range d.Groups {
		g.Groups = append(g.Groups, groupFromRequest(i, direction, path+"/"+child.Name, child))
	}
	return g
}

// interfaceForOperator returns the API form of a whole interface for an operator or viewer. For tenants see
// interfaceForCaller.
func interfaceForOperator(i *store.Interface, by store.Token) (interfaceDoc, error) {
	out := interfaceDoc{Dev: i.Dev, Perspective: i.Perspective, Engine: i.Engine, Overdraft: i.Overdraft, GSO: i.GSO}
	if i.Quantum != 0 {
		out.Quantum = i.Quantum.String()
	}
	if !i.Step.IsZero() {
		out.Step = &i.Step
	}
	if i.Overhead != (group.Overhead{}) {
		out.Overhead = &overheadDoc{i.Overhead.Frame.String(), i.Overhead.Minimum.String()}
	}
	for _, name := range directions {
		d := i.Direction(name)
		if d == nil {
			continue
		}
		limit, err := json.Marshal(d.Limit)
		if err != nil {
			return out, err
		}
		doc := &directionDoc{Limit: limit, Spare: d.Spare, Groups: []groupDoc{}}
		for _, g := range d.Groups {
			doc.Groups = append(doc.Groups, groupForCaller(i, name, g.Name, g, by))
		}
		if name == "in" {
			out.In = doc
		} else {
			out.Out = doc
		}
	}
	return out, nil
}

// directions are the names of the directions, in the order in which the API shows them.
var directions = []string{"out", "in"}

// domain converts an interface of a request into a document without connections.
func (d interfaceDoc) domain(dev string) (*store.Interface, error) {
	i := &store.Interface{Interface: group.Interface{Dev: dev, Perspective: d.Perspective, Engine: d.Engine}}
	i.Overdraft, i.GSO = d.Overdraft, d.GSO
	if d.Step != nil {
		i.Step = *d.Step
	}
	if d.Quantum != "" {
		var err error
		if i.Quantum, err = group.ParseQuantum(d.Quantum); err != nil {
			return nil, invalidField("quantum", err)
		}
	}
	if d.Overhead != nil {
		if err := i.Overhead.Frame.UnmarshalText([]byte(orZero(d.Overhead.Frame))); err != nil {
			return nil, invalidField("overhead.frame", err)
		}
		if err := i.Overhead.Minimum.UnmarshalText([]byte(orZero(d.Overhead.Minimum))); err != nil {
			return nil, invalidField("overhead.minimum", err)
		}
	}
	for name, doc := range map[string]*directionDoc{"out": d.Out, "in": d.In} {
		if doc == nil {
			continue
		}
		to := &group.Direction{Spare: doc.Spare}
		if err := json.Unmarshal(doc.Limit, &to.Limit); err != nil {
			return nil, invalidField(name+".limit", err)
		}
		for _, g := range doc.Groups {
			to.Groups = append(to.Groups, groupFromRequest(i, name, g.Name, g))
		}
		if name == "in" {
			i.In = to
		} else {
			i.Out = to
		}
	}
	return i, nil
}

// orZero returns the size, or zero bytes if the size is empty.
func orZero(size string) string {
	if size == "" {
		return "0B"
	}
	return size
}

// invalidField returns a refusal because of one invalid field.
func invalidField(field string, err error) *Refusal {
	return &Refusal{Status: http.StatusUnprocessableEntity, Detail: field + ": " + err.Error(), Fields: []Field{{field, err.Error()}}}
}

// checkInterface refuses an invalid interface. The check is the same as for a configuration file. of turns a
// problem into a field of the refusal; false if the caller may not see the problem.
func checkInterface(i *store.Interface, of func(group.Problem) (Field, bool)) error {
	_, problems := i.Resolve()
	if len(problems) == 0 {
		return nil
	}
	out := &Refusal{Status: http.StatusUnprocessableEntity}
	for _, p := range problems {
		if f, ok := of(p); ok {
			out.Fields = append(out.Fields, f)
		}
	}
	if len(out.Fields) == 0 {
		out.Fields = []Field{{"", "conflicts with the operator's configuration"}}
	}
	out.Detail = out.Fields[0].Message
	if f := out.Fields[0].Field; f != "" {
		out.Detail = f + ": " + out.Detail
	}
	return out
}

// operatorField turns a problem into a field, for operators, who see all problems.
func operatorField(p group.Problem) (Field, bool) { return Field{p.Where, p.Message}, true }

// interfaceAt reads an interface in the transaction.
func (c *changeRequest) interfaceAt(host, dev string) (*store.Interface, bool, error) {
	var i store.Interface
	key := interfaceKey(host, dev)
	c.resource = resourceOf(key)
	_, ok, err := c.tx.Get(key, &i)
	if err == nil && ok {
		c.readKey, c.read = key, &i
	}
	return &i, ok, err
}

// requireTenants refuses an interface whose owners do not exist. For operators, requireTenants also refuses owners
// that are not allowed (see checkOwners): a tenant could not correct these.
func (c *changeRequest) requireTenants(i *store.Interface) error {
	if c.by.Tenant == "" {
		if err := checkOwners(i); err != nil {
			return invalidField("tenant", err)
		}
	}
	for _, t := range i.Tenants() {
		_, ok, err := c.tx.Get(store.Key(store.Tenants, t), nil)
		if err != nil {
			return err
		}
		if !ok {
			return &Refusal{Status: http.StatusUnprocessableEntity, Detail: "tenant " + t + " does not exist: create it first", Fields: []Field{{"tenant", "tenant " + t + " does not exist"}}}
		}
	}
	return nil
}

// requireHost refuses the change if the host does not exist.
func (c *changeRequest) requireHost(name string) error {
	_, ok, err := c.tx.Get(store.Key(store.Hosts, name), nil)
	if err == nil && !ok {
		err = notFound("host", name)
	}
	return err
}

// ListInterfaces lists the configured interfaces of a host. A tenant gets the names of the interfaces on
// which it owns groups.
func (s *Server) ListInterfaces(w http.ResponseWriter, r *http.Request, host string, p api.ListInterfacesParams) {
	by := principalOf(r)
	out, err := listPage(r.Context(), s.Store, store.Prefix(store.Interfaces, host), p.After, p.Limit, func(i store.Interface) (interfaceDoc, bool) {
		if by.Tenant != "" {
			return interfaceDoc{Dev: i.Dev}, i.HasTenant(by.Tenant)
		}
		return interfaceDoc{Dev: i.Dev, Perspective: i.Perspective, Engine: i.Engine}, true
	})
	writeResource(w, r, out, err)
}

// GetInterface shows one interface, now or at a revision. A tenant gets only its own groups.
func (s *Server) GetInterface(w http.ResponseWriter, r *http.Request, host, dev string, p api.GetInterfaceParams) {
	i, err := s.readInterface(r, host, dev, valueOr(p.Revision, 0))
	if err != nil {
		problem(w, r, err)
		return
	}
	out, err := s.interfaceForCaller(i, principalOf(r))
	writeResource(w, r, out, err)
}

// readInterface reads an interface at a revision, 0 for the current one. An interface on which the caller
// owns no group is not found.
func (s *Server) readInterface(r *http.Request, host, dev string, at int64) (*store.Interface, error) {
	doc, ok, err := s.Store.Get(r.Context(), interfaceKey(host, dev), at)
	if err != nil {
		return nil, err
	}
	var i store.Interface
	if ok {
		err = doc.Into(&i)
	}
	by := principalOf(r)
	if !ok || by.Tenant != "" && !i.HasTenant(by.Tenant) {
		return nil, notFound("interface", dev)
	}
	s.chargeRead(by, host, dev)
	return &i, err
}

// interfaceForCaller returns the API form of an interface for one caller: a tenant gets only its own groups.
func (s *Server) interfaceForCaller(i *store.Interface, by store.Token) (interfaceDoc, error) {
	if by.Tenant == "" {
		return interfaceForOperator(i, by)
	}
	out := interfaceDoc{Dev: i.Dev}
	for _, name := range directions {
		d := i.Direction(name)
		if d == nil {
			continue
		}
		doc := &directionDoc{Limit: json.RawMessage(`"0bit"`), Groups: []groupDoc{}}
		var most unit.Rate
		walkGroups(d.Groups, "", func(path string, g group.Group) (inside bool) {
			if i.Owner(name, path) != by.Tenant {
				return true
			}
			doc.Groups = append(doc.Groups, groupForCaller(i, name, path, g, by))
			return false
		})
		if len(doc.Groups) == 0 {
			continue
		}
		// The limit that a tenant sees is the sum of the ceilings of its groups, at most the real limit.
		tree, problems := d.Resolve(name, true)
		if len(problems) == 0 {
			for _, n := range tree.Nodes {
				if parent, _ := group.Split(n.Path); i.Owner(name, n.Path) == by.Tenant && (parent == "" || i.Owner(name, parent) != by.Tenant) {
					most += n.Ceiling
				}
			}
			doc.Limit, _ = json.Marshal(min(tree.Limit, most))
		}
		if name == "in" {
			out.In = doc
		} else {
			out.Out = doc
		}
	}
	return out, nil
}

// walkGroups calls fn with every group and its path, parents first. The groups in a group are visited only if fn
// returns true.
func walkGroups(groups []group.Group, in string, fn func(path string, g group.Group) (inside bool)) {
	for _, g := range groups {
		path := g.Name
		if in != "" {
			path = in + "/" + g.Name
		}
		if fn(path, g) {
			walkGroups(g.Groups, path, fn)
		}
	}
}

// PutInterface creates or replaces the configuration of an interface.
func (s *Server) PutInterface(w http.ResponseWriter, r *http.Request, host, dev string, _ api.PutInterfaceParams) {
	doc, err := parseBody[interfaceDoc](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, interfaceKey(host, dev), func(c *changeRequest) (response, error) {
		before, err := c.interfaceToReplace(host, dev)
		if err != nil {
			return response{}, err
		}
		i, err := doc.domain(dev)
		if err != nil {
			return response{}, err
		}
		setOrigins(before, i, group.OriginFile)
		i.Connections = assignableConnections(before.Connections, i)
		return c.putInterface(host, i)
	})
}

// interfaceToReplace reads the current interface of an existing host, and checks If-Match against it.
func (c *changeRequest) interfaceToReplace(host, dev string) (*store.Interface, error) {
	if err := c.requireHost(host); err != nil {
		return nil, err
	}
	before, there, err := c.interfaceAt(host, dev)
	if err != nil {
		return nil, err
	}
	return before, c.checkIfMatchInterface(before, there)
}

// checkIfMatchInterface checks If-Match against the current interface.
func (c *changeRequest) checkIfMatchInterface(before *store.Interface, there bool) error {
	if !there {
		return c.checkIfMatch(nil)
	}
	now, err := interfaceForOperator(before, c.by)
	if err != nil {
		return err
	}
	return c.checkIfMatch(now)
}

// putInterface checks an operator's whole interface, writes it and answers with it.
func (c *changeRequest) putInterface(host string, i *store.Interface) (response, error) {
	if err := checkInterface(i, operatorField); err != nil {
		return response{}, err
	}
	if err := c.requireTenants(i); err != nil {
		return response{}, err
	}
	if err := c.saveInterface(host, i); err != nil {
		return response{}, err
	}
	now, err := interfaceForOperator(i, c.by)
	if err != nil {
		return response{}, err
	}
	return respondWith(http.StatusOK, now)
}

// DeleteInterface deletes the configuration of an interface, so that the controller no longer owns it.
func (s *Server) DeleteInterface(w http.ResponseWriter, r *http.Request, host, dev string, _ api.DeleteInterfaceParams) {
	s.change(w, r, interfaceKey(host, dev), func(c *changeRequest) (response, error) {
		before, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return response{}, err
		}
		if !there {
			return response{}, notFound("interface", dev)
		}
		if err := c.checkIfMatchInterface(before, there); err != nil {
			return response{}, err
		}
		return noContent, c.deleteInterface(host, before)
	})
}

// RollBack restores an interface to a former revision. Assigned connections stay as they are now if their
// groups exist in that revision.
func (s *Server) RollBack(w http.ResponseWriter, r *http.Request, host, dev string, _ api.RollBackParams) {
	to, err := parseBody[struct {
		Revision int64 `json:"revision"`
	}](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	was, err := s.readInterface(r, host, dev, to.Revision)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, interfaceKey(host, dev), func(c *changeRequest) (response, error) {
		before, err := c.interfaceToReplace(host, dev)
		if err != nil {
			return response{}, err
		}
		next := was.Clone()
		next.Connections = assignableConnections(before.Connections, next) // the connections of that revision have ended
		return c.putInterface(host, next)
	})
}
