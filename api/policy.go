package api

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	"headgate/collective"
	"headgate/config"
	"headgate/group"
	"headgate/store"
)

// asFile are interfaces and sets as a configuration file.
func asFile(interfaces []store.Interface, documents []store.Collective) Policy {
	var text bytes.Buffer
	for _, i := range interfaces {
		text.WriteString("---\n")
		text.Write(config.Format(i.Interface))
	}
	for _, p := range sets(documents) {
		text.WriteString("---\n")
		text.Write(config.FormatCollective(p))
	}
	return Policy{Text: text.String()}
}

// GetPolicy shows all of a host as a file.
func (s *Server) GetPolicy(w http.ResponseWriter, r *http.Request, host string) {
	var at int64 // all of it
	out, err := policyOf(host, func(below string) (docs []store.Doc, err error) {
		docs, at, err = s.Store.All(r.Context(), below, at)
		return docs, err
	})
	show(w, r, out, err)
}

// policyOf is all of a host as a file, from what list gives.
func policyOf(host string, list func(below string) ([]store.Doc, error)) (Policy, error) {
	interfaces, err := into[store.Interface](list(store.Prefix(store.Interfaces, host)))
	if err != nil {
		return Policy{}, err
	}
	documents, err := into[store.Collective](list(store.Prefix(store.Collectives, host)))
	return asFile(interfaces, documents), err
}

// into reads documents.
func into[T any](docs []store.Doc, err error) ([]T, error) {
	out := make([]T, len(docs))
	for n, d := range docs {
		if err == nil {
			err = d.Into(&out[n])
		}
	}
	return out, err
}

// matchesPolicy refuses a change of a host of which the caller has seen another file.
func (c *call) matchesPolicy(host string) error {
	if c.match == "" {
		return nil // so that nothing is read for it
	}
	now, err := policyOf(host, c.tx.All)
	if err != nil {
		return err
	}
	return c.matches(now)
}

// PutPolicy makes a host's devices and sets what a file says, and leaves others alone, as apply
// does. Whose groups are stays, where they stay, and so does what is in them, where the file does not
// say. The answer is what the file has come to.
func (s *Server) PutPolicy(w http.ResponseWriter, r *http.Request, host string, _ PutPolicyParams) {
	want, err := body[Policy](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	set, err := config.Parse("text", []byte(want.Text))
	if err != nil {
		problem(w, r, wrong("text", err))
		return
	}
	if len(set.Interfaces) == 0 && len(set.Collectives) == 0 {
		problem(w, r, wrong("text", refuse(0, "write documents of kind: Interface or Collective")))
		return
	}
	// All of them at once: each change of one of them makes it be tried again.
	s.change(w, r, store.Prefix(store.Interfaces, host), func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		if err := c.matchesPolicy(host); err != nil {
			return answer{}, err
		}
		c.resource = "policy/" + host
		var interfaces []store.Interface
		for _, i := range set.Interfaces {
			key := ledger(host, i.Dev)
			var before store.Interface
			if _, _, err := c.tx.Get(key, &before); err != nil {
				return answer{}, err
			}
			next := (&store.Interface{Interface: i.Interface}).Clone()
			keepOwned(&before, next)
			if err := owners(next); err != nil {
				return answer{}, wrong("text", err)
			}
			next.Connections = stay(before.Connections, next)
			if err := check(next, ofFile(next)); err != nil {
				return answer{}, err
			}
			if err := c.save(host, next); err != nil {
				return answer{}, err
			}
			interfaces = append(interfaces, *next)
		}
		documents, err := c.putSets(host, set.Collectives)
		if err != nil {
			return answer{}, err
		}
		out, err := shows(http.StatusOK, asFile(interfaces, documents))
		out.Tag = "" // which is of all of the host's
		return out, err
	})
}

// keepOwned keeps whose groups are that are still there, and what is in a tenant's group of which the
// next document has none inside: a file of the operator's need not know it.
func keepOwned(before, next *store.Interface) {
	for _, at := range slices.Sorted(maps.Keys(before.Owners)) { // a group before those in it
		direction, path, _ := strings.Cut(at, "/")
		is, was := groupAt(next, direction, path), groupAt(before, direction, path)
		if is == nil {
			continue
		}
		if was != nil && len(is.Groups) == 0 {
			is.Groups = was.Groups
		}
		next.Own(direction, path, before.Owners[at])
	}
}

// groupAt is a group of an interface, nil if there is none.
func groupAt(i *store.Interface, direction, path string) *group.Group {
	if d := i.Direction(direction); d != nil {
		return d.At(path)
	}
	return nil
}

// ofFile tells of problems in the words of a file, which has groups by their names.
func ofFile(i *store.Interface) func(group.Problem) (Field, bool) {
	return func(p group.Problem) (Field, bool) {
		where := p.Where
		if direction, path, rest := pathOf(i, p.Where); path != "" {
			where = direction + " group " + path
			if rest != "" {
				where += ": " + rest
			}
		}
		return Field{"text", i.Dev + ": " + where + ": " + p.Message}, true
	}
}

// putSets writes a file's sets.
func (c *call) putSets(host string, sets []config.Collective) (documents []store.Collective, err error) {
	var policies []collective.Policy
	for _, s := range sets {
		policies = append(policies, s.Policy)
	}
	if err := c.together(host, "text", policies...); err != nil {
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
