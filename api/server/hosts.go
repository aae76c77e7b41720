package server

import (
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// hostOf returns a host with the state that its agent reports.
func (s *Server) hostOf(h store.Host) api.HostState {
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

// hostConfig returns the configuration of a host without the reported state. The host's ETag is made from
// the configuration, so that only a change of the configuration changes the ETag.
func hostConfig(h store.Host) api.Host {
	out := api.Host{Name: &h.Name}
	if h.Description != "" {
		out.Description = &h.Description
	}
	if h.Revoked {
		out.Revoked = &h.Revoked
	}
	return out
}

// ListHosts lists all hosts. A tenant gets the hosts on which it owns groups.
func (s *Server) ListHosts(w http.ResponseWriter, r *http.Request, p api.ListHostsParams) {
	by := principalOf(r)
	var divided map[string]hostInterfaces
	var err error
	if by.Tenant != "" {
		divided, err = s.readHostInterfaces(r)
	}
	var out page[api.HostState]
	if err == nil {
		out, err = listPage(r.Context(), s.Store, store.Prefix(store.Hosts), p.After, p.Limit, func(h store.Host) (api.HostState, bool) {
			if by.Tenant != "" {
				return api.HostState{Name: &h.Name}, divided[h.Name].has(by.Tenant)
			}
			return s.hostOf(h), true
		})
	}
	writeResource(w, r, out, err)
}

// GetHost shows one host. The ETag is that of the configuration alone, against which If-Match is checked,
// because the reported state always changes.
func (s *Server) GetHost(w http.ResponseWriter, r *http.Request, name string) {
	h, err := get[store.Host](s, r, store.Key(store.Hosts, name), notFound("host", name))
	var meant, is response
	if err == nil {
		meant, err = respondWith(http.StatusOK, hostConfig(h))
	}
	if err == nil {
		is, err = respondWith(http.StatusOK, s.hostOf(h))
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	is.Tag = meant.Tag
	is.write(w)
}

// PutHost creates or replaces a host.
func (s *Server) PutHost(w http.ResponseWriter, r *http.Request, name string, _ api.PutHostParams) {
	want, err := parseBody[api.Host](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		h, err := readCurrent(c, key, hostConfig)
		if err != nil {
			return response{}, err
		}
		h.Name, h.Description, h.Revoked = name, valueOr(want.Description, ""), valueOr(want.Revoked, false)
		return put(c, key, h, hostConfig)
	})
}

// DeleteHost deletes a host that has no interfaces and no connection sets.
func (s *Server) DeleteHost(w http.ResponseWriter, r *http.Request, name string, _ api.DeleteHostParams) {
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		if _, err := readExisting(c, key, notFound("host", name), hostConfig); err != nil {
			return response{}, err
		}
		for _, kind := range []string{store.Interfaces, store.Collectives} {
			keys, err := c.tx.Keys(store.Prefix(kind, name))
			if err != nil {
				return response{}, err
			}
			if len(keys) > 0 {
				return response{}, refuse(http.StatusConflict, "host %s has %s: delete it first", name, resourceOf(keys[0]))
			}
		}
		c.tx.Delete(key)
		return noContent, nil
	})
}

// SignCertificate signs the certificate of an agent that joins. The token is spent.
func (s *Server) SignCertificate(w http.ResponseWriter, r *http.Request, name string) {
	by := principalOf(r)
	asked, err := parseBody[struct {
		Request string `json:"request"`
	}](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	if by.Host != name {
		problem(w, r, refuse(http.StatusForbidden, "the token belongs to another host"))
		return
	}
	signed, serial, err := s.Sign(name, []byte(asked.Request))
	if err != nil {
		problem(w, r, invalidField("request", err))
		return
	}
	key := store.Key(store.Hosts, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		var h store.Host
		_, there, err := c.tx.Get(key, &h)
		if err != nil {
			return response{}, err
		}
		if !there || h.Revoked {
			return response{}, refuse(http.StatusForbidden, "host %s is not permitted to join", name)
		}
		token, err := c.oneTimeTokenKey()
		if err != nil {
			return response{}, err
		}
		c.tx.Delete(token)
		h.Serials = []string{serial} // an agent that joins replaces the host's former agent
		c.resource = "hosts/" + name
		if err := c.tx.Put(key, h); err != nil {
			return response{}, err
		}
		return respondWith(http.StatusOK, signed)
	})
}

// oneTimeTokenKey returns the key of the caller's token, which can be used once, or a refusal if the token is gone.
func (c *changeRequest) oneTimeTokenKey() (key string, err error) {
	keys, err := c.tx.Keys(store.Prefix(store.Tokens) + c.by.ID)
	if err != nil {
		return "", err
	}
	if len(keys) != 1 {
		return "", refuse(http.StatusUnauthorized, "the token was already used")
	}
	if _, ok, err := c.tx.Get(keys[0], nil); err != nil || !ok {
		return "", refuse(http.StatusUnauthorized, "the token was already used")
	}
	return keys[0], nil
}
