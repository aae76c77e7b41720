package api

import (
	"net/http"

	"headgate/store"
)

// hostOf is a host with what its agent tells of it.
func (s *Server) hostOf(h store.Host) HostState {
	out, connected := s.Agents.State(h.Name)
	out.Name, out.Connected = &h.Name, &connected
	if h.Description != "" {
		out.Description = &h.Description
	}
	if h.Revoked {
		out.Revoked = &h.Revoked
	}
	return out
}

// plainHost is a host as it is meant, whose ETag changes with that alone.
func plainHost(h store.Host) Host {
	out := Host{Name: &h.Name}
	if h.Description != "" {
		out.Description = &h.Description
	}
	if h.Revoked {
		out.Revoked = &h.Revoked
	}
	return out
}

// ListHosts lists all; to a tenant those on which it has something.
func (s *Server) ListHosts(w http.ResponseWriter, r *http.Request, p ListHostsParams) {
	by := principalOf(r)
	var divided map[string]divided
	var err error
	if by.Tenant != "" {
		divided, err = s.dividedOf(r)
	}
	var out page[HostState]
	if err == nil {
		out, err = list(r.Context(), s.Store, store.Prefix(store.Hosts), p.After, p.Limit, func(h store.Host) (HostState, bool) {
			if by.Tenant != "" {
				return HostState{Name: &h.Name}, divided[h.Name].has(by.Tenant)
			}
			return s.hostOf(h), true
		})
	}
	show(w, r, out, err)
}

// GetHost shows one. Its ETag is that of the host as it is meant, which a change is held against:
// what its agent tells is always another.
func (s *Server) GetHost(w http.ResponseWriter, r *http.Request, name string) {
	h, err := get[store.Host](s, r, store.Key(store.Hosts, name), "host", name)
	var meant, is answer
	if err == nil {
		meant, err = shows(http.StatusOK, plainHost(h))
	}
	if err == nil {
		is, err = shows(http.StatusOK, s.hostOf(h))
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	is.Tag = meant.Tag
	is.write(w)
}

// PutHost makes or changes one.
func (s *Server) PutHost(w http.ResponseWriter, r *http.Request, name string, _ PutHostParams) {
	want, err := body[Host](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		h, err := current(c, key, plainHost)
		if err != nil {
			return answer{}, err
		}
		h.Name, h.Description, h.Revoked = name, or(want.Description, ""), or(want.Revoked, false)
		return put(c, key, h, plainHost)
	})
}

// DeleteHost removes one with all that is on it.
func (s *Server) DeleteHost(w http.ResponseWriter, r *http.Request, name string, _ DeleteHostParams) {
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		if _, err := existing(c, key, "host", name, plainHost); err != nil {
			return answer{}, err
		}
		for _, kind := range []string{store.Interfaces, store.Collectives} {
			keys, err := c.tx.Keys(store.Prefix(kind, name))
			if err != nil {
				return answer{}, err
			}
			if len(keys) > 0 {
				return answer{}, refuse(http.StatusConflict, "the host %s has %s: take them away first", name, resourceOf(keys[0]))
			}
		}
		c.tx.Delete(key)
		return gone, nil
	})
}

// SignCertificate gives an agent its certificate, for a token that is good for it once.
func (s *Server) SignCertificate(w http.ResponseWriter, r *http.Request, name string) {
	by := principalOf(r)
	asked, err := body[struct {
		Request string `json:"request"`
	}](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	if by.Host != name {
		problem(w, r, refuse(http.StatusForbidden, "the token is another host's"))
		return
	}
	signed, serial, err := s.Sign(name, []byte(asked.Request))
	if err != nil {
		problem(w, r, wrong("request", err))
		return
	}
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		var h store.Host
		_, there, err := c.tx.Get(key, &h)
		if err != nil {
			return answer{}, err
		}
		if !there || h.Revoked {
			return answer{}, refuse(http.StatusForbidden, "the host %s may not join", name)
		}
		token, err := c.spend()
		if err != nil {
			return answer{}, err
		}
		c.tx.Delete(token)
		h.Serials = []string{serial} // who joins takes the place of whoever was there
		c.resource = "hosts/" + name
		if err := c.tx.Put(key, h); err != nil {
			return answer{}, err
		}
		return shows(http.StatusOK, signed)
	})
}

// spend is where the caller's token is, which is good for one time.
func (c *call) spend() (key string, err error) {
	keys, err := c.tx.Keys(store.Prefix(store.Tokens) + c.by.ID)
	if err != nil {
		return "", err
	}
	if len(keys) != 1 {
		return "", refuse(http.StatusUnauthorized, "the token was used already")
	}
	if _, ok, err := c.tx.Get(keys[0], nil); err != nil || !ok {
		return "", refuse(http.StatusUnauthorized, "the token was used already")
	}
	return keys[0], nil
}
