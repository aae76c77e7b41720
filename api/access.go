package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate/store"
)

func tenantOf(t store.Tenant) Tenant {
	out := Tenant{Name: &t.Name}
	if t.Description != "" {
		out.Description = &t.Description
	}
	if t.Requests > 0 {
		out.Requests = &t.Requests
	}
	return out
}

// ListTenants lists all.
func (s *Server) ListTenants(w http.ResponseWriter, r *http.Request, p ListTenantsParams) {
	out, err := list(r.Context(), s.Store, store.Prefix(store.Tenants), p.After, p.Limit, func(t store.Tenant) (Tenant, bool) { return tenantOf(t), true })
	show(w, r, out, err)
}

// GetTenant shows one; a tenant itself alone.
func (s *Server) GetTenant(w http.ResponseWriter, r *http.Request, name string) {
	t, err := get[store.Tenant](s, r, store.Key(store.Tenants, name), "tenant", name)
	if by := principalOf(r); err == nil && by.Tenant != "" && by.Tenant != name {
		err = notFound("tenant", name)
	}
	show(w, r, tenantOf(t), err)
}

// PutTenant makes or changes one.
func (s *Server) PutTenant(w http.ResponseWriter, r *http.Request, name string, _ PutTenantParams) {
	want, err := body[Tenant](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	next := store.Tenant{Name: name, Description: or(want.Description, ""), Requests: or(want.Requests, 0)}
	key := store.Key(store.Tenants, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		if _, err := current(c, key, tenantOf); err != nil {
			return answer{}, err
		}
		return put(c, key, next, tenantOf)
	})
}

// DeleteTenant removes one that has nothing.
func (s *Server) DeleteTenant(w http.ResponseWriter, r *http.Request, name string, _ DeleteTenantParams) {
	key := store.Key(store.Tenants, name)
	s.change(w, r, key, func(c *call) (answer, error) {
		if _, err := existing(c, key, "tenant", name, tenantOf); err != nil {
			return answer{}, err
		}
		interfaces, err := c.tx.All(store.Prefix(store.Interfaces))
		if err != nil {
			return answer{}, err
		}
		for _, d := range interfaces {
			var i store.Interface
			if err := d.Into(&i); err != nil {
				return answer{}, err
			}
			if i.HasTenant(name) {
				return answer{}, refuse(http.StatusConflict, "the tenant %s has groups on %s: take them away first", name, strings.TrimPrefix(d.Key, store.Prefix(store.Interfaces)))
			}
		}
		tokens, err := c.tx.All(store.Prefix(store.Tokens))
		if err != nil {
			return answer{}, err
		}
		for _, d := range tokens {
			var t store.Token
			if err := d.Into(&t); err != nil {
				return answer{}, err
			}
			if t.Tenant == name {
				return answer{}, refuse(http.StatusConflict, "the tenant %s has the token %s: take it back first", name, t.ID)
			}
		}
		c.tx.Delete(key)
		return gone, nil
	})
}

// Login says whose a token is, and has a browser that wants a session keep it.
func (s *Server) Login(w http.ResponseWriter, r *http.Request, p LoginParams) {
	asked, err := body[struct {
		Token string `json:"token"`
	}](r)
	var t store.Token
	if err == nil {
		t, err = s.known(r, asked.Token)
	}
	if err == nil {
		if wait := s.limits.take(t, s.requests(r.Context(), t)); wait > 0 {
			err = &Refusal{Status: http.StatusTooManyRequests, Detail: "too many requests: ask more slowly", RetryAfter: wait}
		}
	}
	if err == nil && p.XHeadgateSession != nil {
		err = begin(w, t, asked.Token)
	}
	show(w, r, principal(t), err)
}

func principal(t store.Token) Principal {
	return Principal{Name: t.Name, Role: Role(t.Role), Expires: &t.Expires, Tenant: given(t.Tenant), Host: given(t.Host)}
}

// given is nil for "".
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func tokenOf(t store.Token) Token {
	return Token{Id: t.ID, Name: t.Name, Role: Role(t.Role), Tenant: given(t.Tenant), Host: given(t.Host), Created: t.Created, Expires: t.Expires}
}

// ListTokens lists all, or a tenant's own.
func (s *Server) ListTokens(w http.ResponseWriter, r *http.Request, p ListTokensParams) {
	by := principalOf(r)
	out, err := list(r.Context(), s.Store, store.Prefix(store.Tokens), p.After, p.Limit, func(t store.Token) (Token, bool) {
		return tokenOf(t), by.Tenant == "" || t.Tenant == by.Tenant
	})
	show(w, r, out, err)
}

// How long tokens are good for, if it is not said.
const (
	ordinaryLife = 90 * 24 * time.Hour
	joinLife     = time.Hour
)

// CreateToken makes one.
func (s *Server) CreateToken(w http.ResponseWriter, r *http.Request, _ CreateTokenParams) {
	want, err := body[TokenRequest](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	t, err := newToken(want, principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	secret := NewSecret()
	key, id := tokenKey(secret)
	t.ID = id
	s.change(w, r, store.Prefix(store.Tokens), func(c *call) (answer, error) {
		for kind, name := range map[string]string{store.Tenants: t.Tenant, store.Hosts: t.Host} {
			if name == "" {
				continue
			}
			if _, ok, err := c.tx.Get(store.Key(kind, name), nil); err != nil {
				return answer{}, err
			} else if !ok {
				return answer{}, wrong(strings.TrimSuffix(kind, "s"), fmt.Errorf("there is no %s: make it first", name))
			}
		}
		if c.by.Tenant != "" {
			if err := capTokens(c.tx, c.by.Tenant); err != nil {
				return answer{}, err
			}
		}
		if err := c.tx.Put(key, t); err != nil {
			return answer{}, err
		}
		c.resource = "tokens/" + id
		c.once = "the token " + id + " was made already, and a token is shown once: take it back (DELETE /v1/tokens/" + id + ") and make another, with another Idempotency-Key"
		return shows(http.StatusCreated, struct {
			Token
			Secret string `json:"token"`
		}{tokenOf(t), secret})
	})
}

// newToken is one as it is asked for, if the caller may.
func newToken(want TokenRequest, by store.Token) (t store.Token, err error) {
	t = store.Token{Name: want.Name, Role: store.Role(want.Role), Tenant: or(want.Tenant, ""), Host: or(want.Host, "")}
	life := ordinaryLife
	if t.Role == store.Agent {
		life = joinLife
	}
	if want.Life != nil {
		n, err := strconv.Atoi((*want.Life)[:len(*want.Life)-1])
		if err != nil {
			return t, wrong("life", err)
		}
		life = time.Duration(n) * map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[(*want.Life)[len(*want.Life)-1]]
	}
	t.Created = time.Now().UTC().Truncate(time.Second)
	t.Expires = t.Created.Add(life)
	if by.Tenant != "" {
		if t.Role != store.TenantRole && t.Role != store.Viewer || t.Tenant != "" && t.Tenant != by.Tenant {
			return t, refuse(http.StatusForbidden, "a tenant makes tokens of the roles tenant and viewer, of its own")
		}
		t.Tenant = by.Tenant
	}
	switch {
	case t.Role == store.TenantRole && t.Tenant == "":
		err = wrong("tenant", fmt.Errorf("say whose it is"))
	case t.Role == store.Agent && t.Host == "":
		err = wrong("host", fmt.Errorf("say which host's it is"))
	case t.Role == store.Operator && t.Tenant != "", t.Role == store.Agent && t.Tenant != "":
		err = wrong("tenant", fmt.Errorf("the role %s is of no tenant", t.Role))
	case t.Role != store.Agent && t.Host != "":
		err = wrong("host", fmt.Errorf("the role %s is of no host", t.Role))
	}
	return t, err
}

// DeleteToken takes one back.
func (s *Server) DeleteToken(w http.ResponseWriter, r *http.Request, id string, _ DeleteTokenParams) {
	s.change(w, r, store.Prefix(store.Tokens)+id, func(c *call) (answer, error) {
		keys, err := c.tx.Keys(store.Prefix(store.Tokens) + id)
		if err != nil {
			return answer{}, err
		}
		for _, key := range keys {
			var t store.Token
			if _, ok, err := c.tx.Get(key, &t); err != nil || !ok {
				return answer{}, err
			}
			if c.by.Tenant != "" && t.Tenant != c.by.Tenant {
				continue
			}
			if err := c.matches(tokenOf(t)); err != nil {
				return answer{}, err
			}
			c.resource = "tokens/" + id
			c.tx.Delete(key)
			return gone, nil
		}
		return answer{}, notFound("token", id)
	})
}
