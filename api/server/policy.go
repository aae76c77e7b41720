package server

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// formatPolicy formats interfaces and connection sets as a configuration file.
func formatPolicy(interfaces []store.Interface, documents []store.Collective) api.Policy {
	var text bytes.Buffer
	for _, i := range interfaces {
		text.WriteString("---\n")
		text.Write(config.Format(withTenants(&i)))
	}
	for _, p := range parseSets(documents) {
		text.WriteString("---\n")
		text.Write(config.FormatCollective(p))
	}
	return api.Policy{Text: text.String()}
}

// withTenants returns an interface as a configuration file has it, with the tenants in its groups.
func withTenants(i *store.Interface) group.Interface {
	if len(i.Owners) == 0 {
		return i.Interface
	}
	out := i.Clone()
	for at, tenant := range i.Owners {
		direction, path, _ := strings.Cut(at, "/")
		if g := groupAt(out, direction, path); g != nil {
			g.Tenant = tenant
		}
	}
	return out.Interface
}

// GetPolicy shows all interfaces and connection sets of a host as a configuration file.
func (s *Server) GetPolicy(w http.ResponseWriter, r *http.Request, host string) {
	var at int64 // the first list sets the revision of the others
	out, err := policyOf(host, func(below string) (docs []store.Doc, err error) {
		docs, at, err = s.Store.All(r.Context(), below, at)
		return docs, err
	})
	writeResource(w, r, out, err)
}

// policyOf formats a host's interfaces and connection sets, which list reads, as a configuration file.
func policyOf(host string, list func(below string) ([]store.Doc, error)) (api.Policy, error) {
	interfaces, err := decodeDocs[store.Interface](list(store.Prefix(store.Interfaces, host)))
	if err != nil {
		return api.Policy{}, err
	}
	documents, err := decodeDocs[store.Collective](list(store.Prefix(store.Collectives, host)))
	return formatPolicy(interfaces, documents), err
}

// decodeDocs decodes documents.
func decodeDocs[T any](docs []store.Doc, err error) ([]T, error) {
	out := make([]T, len(docs))
	for n, d := range docs {
		if err == nil {
			err = d.Into(&out[n])
		}
	}
	return out, err
}

// checkIfMatchPolicy checks If-Match against the current policy of the host.
func (c *changeRequest) checkIfMatchPolicy(host string) error {
	if c.ifMatch == "" {
		return nil // without reading the policy
	}
	now, err := policyOf(host, c.tx.All)
	if err != nil {
		return err
	}
	return c.checkIfMatch(now)
}

// PutPolicy replaces the interfaces and connection sets that a configuration file contains and leaves the
// others unchanged, as "headgate apply" does. Groups that still exist keep their tenants, unless the file names others, and a tenant's
// group keeps its child groups if the file has none for it. The answer is the resulting configuration of the
// documents in the file.
func (s *Server) PutPolicy(w http.ResponseWriter, r *http.Request, host string, _ api.PutPolicyParams) {
	want, err := parseBody[api.Policy](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	set, err := config.Parse("text", []byte(want.Text))
	if err != nil {
		problem(w, r, invalidField("text", err))
		return
	}
	if len(set.Interfaces) == 0 && len(set.Collectives) == 0 {
		problem(w, r, invalidField("text", refuse(0, "no documents: add documents of kind: Interface or Collective")))
		return
	}
	// One transaction writes all documents. A concurrent change of one of them makes it run again.
	s.change(w, r, store.Prefix(store.Interfaces, host), func(c *changeRequest) (response, error) {
		if err := c.requireHost(host); err != nil {
			return response{}, err
		}
		if err := c.checkIfMatchPolicy(host); err != nil {
			return response{}, err
		}
		c.resource = "policy/" + host
		var interfaces []store.Interface
		for _, i := range set.Interfaces {
			key := interfaceKey(host, i.Dev)
			var before store.Interface
			if _, _, err := c.tx.Get(key, &before); err != nil {
				return response{}, err
			}
			next := (&store.Interface{Interface: i.Interface}).Clone()
			keepTenantGroups(&before, next)
			for at, tenant := range i.Tenants() {
				direction, path, _ := strings.Cut(at, "/")
				next.SetOwner(direction, path, tenant)
			}
			setOrigins(&before, next, group.OriginFile)
			if err := checkOwners(next); err != nil {
				return response{}, invalidField("text", err)
			}
			if err := c.requireTenants(next); err != nil {
				return response{}, err
			}
			next.Connections = assignableConnections(before.Connections, next)
			if err := checkInterface(next, fileField(next)); err != nil {
				return response{}, err
			}
			if err := c.saveInterface(host, next); err != nil {
				return response{}, err
			}
			interfaces = append(interfaces, *next)
		}
		documents, err := c.putSets(host, set.Collectives)
		if err != nil {
			return response{}, err
		}
		out, err := respondWith(http.StatusOK, formatPolicy(interfaces, documents))
		out.Tag = "" // the ETag is that of the whole policy (GetPolicy)
		return out, err
	})
}

// keepTenantGroups copies the tenants of groups that still exist to the next document. A tenant's group that has no
// child groups in the next document keeps its former ones: an operator's file need not contain them.
func keepTenantGroups(before, next *store.Interface) {
	for _, at := range slices.Sorted(maps.Keys(before.Owners)) { // parents first
		direction, path, _ := strings.Cut(at, "/")
		is, was := groupAt(next, direction, path), groupAt(before, direction, path)
		if is == nil {
			continue
		}
		if was != nil && len(is.Groups) == 0 {
			is.Groups = was.Groups
		}
		next.SetOwner(direction, path, before.Owners[at])
	}
}

// groupAt returns a group of an interface, nil if there is none.
func groupAt(i *store.Interface, direction, path string) *group.Group {
	if d := i.Direction(direction); d != nil {
		return d.Find(path)
	}
	return nil
}

// fileField turns a problem into a field whose message names the group by its path, for the author of a file.
func fileField(i *store.Interface) func(group.Problem) (Field, bool) {
	return func(p group.Problem) (Field, bool) {
		where := p.Where
		if direction, path, rest := i.Locate(p.Where); path != "" {
			where = direction + " group " + path
			if rest != "" {
				where += ": " + rest
			}
		}
		return Field{"text", i.Dev + ": " + where + ": " + p.Message}, true
	}
}

// putSets writes the connection sets of a file.
func (c *changeRequest) putSets(host string, sets []config.Collective) (documents []store.Collective, err error) {
	var policies []collective.Policy
	for _, s := range sets {
		policies = append(policies, s.Policy)
	}
	if err := c.checkSetOverlap(host, "text", policies...); err != nil {
		return nil, err
	}
	for _, p := range policies {
		doc := store.Collective{Name: p.Name, Document: string(config.FormatCollective(p))}
		if err := c.tx.Put(store.Key(store.Collectives, host, p.Name), doc); err != nil {
			return nil, err
		}
		documents = append(documents, doc)
	}
	return documents, nil
}
