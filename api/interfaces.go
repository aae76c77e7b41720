package api

import (
	"encoding/json"
	"net/http"

	"headgate/group"
	"headgate/store"
	"headgate/unit"
)

// ledger is what is decided in one order: all of one interface.
func ledger(host, dev string) string { return store.Key(store.Interfaces, host, dev) }

// groupDoc is a group as the API shows it: the domain's, and whose it is.
type groupDoc struct {
	group.Group
	Tenant string     `json:"tenant,omitempty"`
	Groups []groupDoc `json:"groups,omitempty"` // instead of the domain's
}

// directionDoc and interfaceDoc are theirs.
type directionDoc struct {
	Limit  json.RawMessage `json:"limit"`
	Spare  group.Spare     `json:"spare,omitempty"`
	Groups []groupDoc      `json:"groups"`
}

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

// overheadDoc is group.Overhead, of which either may be left out.
type overheadDoc struct {
	Frame   string `json:"frame,omitempty"`
	Minimum string `json:"minimum,omitempty"`
}

// seen is a group for who asks, with the groups in it: what is of tenants is named for operators
// only.
func seen(i *store.Interface, direction, path string, g group.Group, by store.Token) groupDoc {
	out := groupDoc{Group: g}
	out.Group.Groups = nil
	if by.Tenant == "" {
		out.Tenant = i.Owners[direction+"/"+path]
	}
	for _, child := range g.Groups {
		out.Groups = append(out.Groups, seen(i, direction, path+"/"+child.Name, child, by))
	}
	return out
}

// meant is a group as somebody wrote it, and whose it and the groups in it are to be.
func meant(i *store.Interface, direction, path string, d groupDoc) group.Group {
	g := d.Group
	g.Groups = nil
	if d.Tenant != "" {
		i.Own(direction, path, d.Tenant)
	}
	for _, child := range d.Groups {
		g.Groups = append(g.Groups, meant(i, direction, path+"/"+child.Name, child))
	}
	return g
}

// view is an interface for who asks: a tenant sees its own groups.
func view(i *store.Interface, by store.Token) (interfaceDoc, error) {
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
			doc.Groups = append(doc.Groups, seen(i, name, g.Name, g, by))
		}
		if name == "in" {
			out.In = doc
		} else {
			out.Out = doc
		}
	}
	return out, nil
}

// directions by name, in the order in which they are shown.
var directions = []string{"out", "in"}

// domain is what an operator wrote, as a document without connections.
func (d interfaceDoc) domain(dev string) (*store.Interface, error) {
	i := &store.Interface{Interface: group.Interface{Dev: dev, Perspective: d.Perspective, Engine: d.Engine}}
	i.Overdraft, i.GSO = d.Overdraft, d.GSO
	if d.Step != nil {
		i.Step = *d.Step
	}
	if d.Quantum != "" {
		var err error
		if i.Quantum, err = group.ParseQuantum(d.Quantum); err != nil {
			return nil, wrong("quantum", err)
		}
	}
	if d.Overhead != nil {
		if err := i.Overhead.Frame.UnmarshalText([]byte(orZero(d.Overhead.Frame))); err != nil {
			return nil, wrong("overhead.frame", err)
		}
		if err := i.Overhead.Minimum.UnmarshalText([]byte(orZero(d.Overhead.Minimum))); err != nil {
			return nil, wrong("overhead.minimum", err)
		}
	}
	for name, doc := range map[string]*directionDoc{"out": d.Out, "in": d.In} {
		if doc == nil {
			continue
		}
		to := &group.Direction{Spare: doc.Spare}
		if err := json.Unmarshal(doc.Limit, &to.Limit); err != nil {
			return nil, wrong(name+".limit", err)
		}
		for _, g := range doc.Groups {
			to.Groups = append(to.Groups, meant(i, name, g.Name, g))
		}
		if name == "in" {
			i.In = to
		} else {
			i.Out = to
		}
	}
	return i, nil
}

func orZero(size string) string {
	if size == "" {
		return "0B"
	}
	return size
}

func wrong(field string, err error) *Refusal {
	return &Refusal{Status: http.StatusUnprocessableEntity, Detail: field + ": " + err.Error(), Fields: []Field{{field, err.Error()}}}
}

// check refuses an interface that cannot be: the same check as a file's.
func check(i *store.Interface, of func(group.Problem) (Field, bool)) error {
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
		out.Fields = []Field{{"", "it does not fit with what the operator has set"}}
	}
	out.Detail = out.Fields[0].Message
	if f := out.Fields[0].Field; f != "" {
		out.Detail = f + ": " + out.Detail
	}
	return out
}

// plainly is for operators, who see all fields.
func plainly(p group.Problem) (Field, bool) { return Field{p.Where, p.Message}, true }

// interfaceAt reads an interface in a transaction.
func (c *call) interfaceAt(host, dev string) (*store.Interface, bool, error) {
	var i store.Interface
	c.resource = resourceOf(ledger(host, dev))
	_, ok, err := c.tx.Get(ledger(host, dev), &i)
	return &i, ok, err
}

// tenants refuses owners that there are not, or cannot be: these are the operator's to mend.
func (c *call) tenants(i *store.Interface) error {
	if c.by.Tenant == "" {
		if err := owners(i); err != nil {
			return wrong("tenant", err)
		}
	}
	for _, t := range i.Tenants() {
		_, ok, err := c.tx.Get(store.Key(store.Tenants, t), nil)
		if err != nil {
			return err
		}
		if !ok {
			return &Refusal{Status: http.StatusUnprocessableEntity, Detail: "there is no tenant " + t + ": make it first", Fields: []Field{{"tenant", "there is no tenant " + t}}}
		}
	}
	return nil
}

// host refuses one that there is not.
func (c *call) host(name string) error {
	_, ok, err := c.tx.Get(store.Key(store.Hosts, name), nil)
	if err == nil && !ok {
		err = notFound("host", name)
	}
	return err
}

// ListInterfaces is part of ServerInterface, as are all methods of its kind.
func (s *Server) ListInterfaces(w http.ResponseWriter, r *http.Request, host string, p ListInterfacesParams) {
	by := principalOf(r)
	out, err := list(r.Context(), s.Store, store.Prefix(store.Interfaces, host), p.After, p.Limit, func(i store.Interface) (interfaceDoc, bool) {
		if by.Tenant != "" {
			return interfaceDoc{Dev: i.Dev}, i.HasTenant(by.Tenant)
		}
		return interfaceDoc{Dev: i.Dev, Perspective: i.Perspective, Engine: i.Engine}, true
	})
	show(w, r, out, err)
}

// GetInterface shows one; to a tenant with its own groups alone.
func (s *Server) GetInterface(w http.ResponseWriter, r *http.Request, host, dev string, p GetInterfaceParams) {
	i, err := s.readInterface(r, host, dev, or(p.Revision, 0))
	if err != nil {
		problem(w, r, err)
		return
	}
	out, err := s.visible(i, principalOf(r))
	show(w, r, out, err)
}

func (s *Server) readInterface(r *http.Request, host, dev string, at int64) (*store.Interface, error) {
	doc, ok, err := s.Store.Get(r.Context(), ledger(host, dev), at)
	if err != nil {
		return nil, err
	}
	var i store.Interface
	if ok {
		err = doc.Into(&i)
	}
	if by := principalOf(r); !ok || by.Tenant != "" && !i.HasTenant(by.Tenant) {
		return nil, notFound("interface", dev)
	}
	return &i, err
}

// visible is an interface without what is another's.
func (s *Server) visible(i *store.Interface, by store.Token) (interfaceDoc, error) {
	if by.Tenant == "" {
		return view(i, by)
	}
	out := interfaceDoc{Dev: i.Dev}
	for _, name := range directions {
		d := i.Direction(name)
		if d == nil {
			continue
		}
		doc := &directionDoc{Limit: json.RawMessage(`"0bit"`), Groups: []groupDoc{}}
		var most unit.Rate
		each(d.Groups, "", func(path string, g group.Group) (inside bool) {
			if i.Owner(name, path) != by.Tenant {
				return true
			}
			doc.Groups = append(doc.Groups, seen(i, name, path, g, by))
			return false
		})
		if len(doc.Groups) == 0 {
			continue
		}
		// A tenant's limit is what its groups may have at most.
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

// each calls fn with every group and its path, parents first; what is in one only if fn says so.
func each(groups []group.Group, in string, fn func(path string, g group.Group) (inside bool)) {
	for _, g := range groups {
		path := g.Name
		if in != "" {
			path = in + "/" + g.Name
		}
		if fn(path, g) {
			each(g.Groups, path, fn)
		}
	}
}

// PutInterface divides one.
func (s *Server) PutInterface(w http.ResponseWriter, r *http.Request, host, dev string, _ PutInterfaceParams) {
	doc, err := body[interfaceDoc](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, ledger(host, dev), func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		before, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return answer{}, err
		}
		if err := c.matchesInterface(before, there); err != nil {
			return answer{}, err
		}
		i, err := doc.domain(dev)
		if err != nil {
			return answer{}, err
		}
		i.Connections = stay(before.Connections, i)
		return c.putInterface(host, i)
	})
}

func (c *call) matchesInterface(before *store.Interface, there bool) error {
	if !there {
		return c.matches(nil)
	}
	now, err := view(before, c.by)
	if err != nil {
		return err
	}
	return c.matches(now)
}

// putInterface checks an operator's whole interface, and writes it.
func (c *call) putInterface(host string, i *store.Interface) (answer, error) {
	if err := check(i, plainly); err != nil {
		return answer{}, err
	}
	if err := c.tenants(i); err != nil {
		return answer{}, err
	}
	if err := c.save(host, i); err != nil {
		return answer{}, err
	}
	now, err := view(i, c.by)
	if err != nil {
		return answer{}, err
	}
	return shows(http.StatusOK, now)
}

// DeleteInterface gives one back.
func (s *Server) DeleteInterface(w http.ResponseWriter, r *http.Request, host, dev string, _ DeleteInterfaceParams) {
	s.change(w, r, ledger(host, dev), func(c *call) (answer, error) {
		before, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return answer{}, err
		}
		if !there {
			return answer{}, notFound("interface", dev)
		}
		if err := c.matchesInterface(before, there); err != nil {
			return answer{}, err
		}
		return gone, c.giveBack(host, before)
	})
}

// RollBack makes an interface what it was. Connections stay as they are now, where their groups are
// there.
func (s *Server) RollBack(w http.ResponseWriter, r *http.Request, host, dev string, _ RollBackParams) {
	to, err := body[struct {
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
	s.change(w, r, ledger(host, dev), func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		before, there, err := c.interfaceAt(host, dev)
		if err != nil {
			return answer{}, err
		}
		if err := c.matchesInterface(before, there); err != nil {
			return answer{}, err
		}
		next := was.Clone()
		next.Connections = stay(before.Connections, next) // those of then are over
		return c.putInterface(host, next)
	})
}
