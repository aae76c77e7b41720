package api

import (
	"bytes"
	"net/http"
	"strings"

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

// PutCollective makes or changes one.
func (s *Server) PutCollective(w http.ResponseWriter, r *http.Request, host, name string, _ PutCollectiveParams) {
	want, err := body[Collective](r)
	if err == nil {
		err = oneSet(name, want.Document)
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
		return put(c, key, store.Collective{Name: name, Document: want.Document}, collectiveOf)
	})
}

// oneSet refuses a document that is not the set of that name.
func oneSet(name, document string) error {
	set, err := config.Parse("document", []byte(document))
	if err != nil {
		return wrong("document", err)
	}
	if len(set.Collectives) != 1 || len(set.Interfaces) > 0 || set.Collectives[0].Name != name {
		return wrong("document", refuse(0, "write one document of kind: Collective with name: %s", name))
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

// GetPolicy shows all of a host as a file.
func (s *Server) GetPolicy(w http.ResponseWriter, r *http.Request, host string) {
	docs, _, _, err := s.Store.List(r.Context(), store.Prefix(store.Interfaces, host), "", 0)
	var text bytes.Buffer
	for _, d := range docs {
		var i store.Interface
		if err = d.Into(&i); err != nil {
			break
		}
		text.WriteString("---\n")
		text.Write(config.Format(i.Interface))
	}
	if err == nil {
		docs, _, _, err = s.Store.List(r.Context(), store.Prefix(store.Collectives, host), "", 0)
	}
	for _, d := range docs {
		var c store.Collective
		if err = d.Into(&c); err != nil {
			break
		}
		text.WriteString("---\n" + strings.TrimSpace(c.Document) + "\n")
	}
	show(w, r, Policy{Text: text.String()}, err)
}

// PutPolicy makes a host's devices what a file says, and leaves others alone, as apply does. Whose
// groups are stays, where they stay.
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
	if len(set.Interfaces) == 0 || len(set.Collectives) > 0 {
		problem(w, r, wrong("text", refuse(0, "write documents of kind: Interface; a set of connections is put by itself")))
		return
	}
	// All of them at once: each change of one of them makes it be tried again.
	s.change(w, r, store.Prefix(store.Interfaces, host), func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		c.resource = "policy/" + host
		for _, i := range set.Interfaces {
			key := ledger(host, i.Dev)
			var before store.Interface
			if _, _, err := c.tx.Get(key, &before); err != nil {
				return answer{}, err
			}
			next := &store.Interface{Interface: i.Interface}
			for at, t := range before.Owners {
				direction, path, _ := strings.Cut(at, "/")
				if d := next.Direction(direction); d != nil && d.At(path) != nil {
					next.Own(direction, path, t)
				}
			}
			next.Connections = stay(before.Connections, next)
			if err := c.tx.Put(key, next); err != nil {
				return answer{}, err
			}
		}
		return shows(http.StatusOK, want)
	})
}
