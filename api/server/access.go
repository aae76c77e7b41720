package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// tenantOf returns the API form of a tenant.
func tenantOf(t store.Tenant) api.Tenant {
	out := api.Tenant{Name: &t.Name}
	if t.Description != "" {
		out.Description = &t.Description
	}
	if t.Requests > 0 {
		out.RequestsPerSecond = &t.Requests
	}
	out.Reservations = boundsShown(t.Reservations)
	return out
}

// ListTenants lists all tenants.
func (s *Server) ListTenants(w http.ResponseWriter, r *http.Request, p api.ListTenantsParams) {
	out, err := listPage(r.Context(), s.Store, store.Prefix(store.Tenants), p.After, p.Limit, func(t store.Tenant) (api.Tenant, bool) { return tenantOf(t), true })
	writeResource(w, r, out, err)
}

// GetTenant shows one tenant. A tenant may get only itself.
func (s *Server) GetTenant(w http.ResponseWriter, r *http.Request, name string) {
	t, err := get[store.Tenant](s, r, store.Key(store.Tenants, name), notFound("tenant", name))
	if by := principalOf(r); err == nil && by.Tenant != "" && by.Tenant != name {
		err = notFound("tenant", name)
	}
	writeResource(w, r, tenantOf(t), err)
}

// PutTenant creates or replaces a tenant.
func (s *Server) PutTenant(w http.ResponseWriter, r *http.Request, name string, _ api.PutTenantParams) {
	want, err := parseBody[api.Tenant](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	next := store.Tenant{Name: name, Description: valueOr(want.Description, ""), Requests: valueOr(want.RequestsPerSecond, 0)}
	if next.Reservations, err = boundsFrom(want.Reservations); err != nil {
		problem(w, r, err)
		return
	}
	key := store.Key(store.Tenants, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		if _, err := readCurrent(c, key, tenantOf); err != nil {
			return response{}, err
		}
		return put(c, key, next, tenantOf)
	})
}

// DeleteTenant deletes a tenant that owns no groups, no valid tokens and no reservations.
func (s *Server) DeleteTenant(w http.ResponseWriter, r *http.Request, name string, _ api.DeleteTenantParams) {
	key := store.Key(store.Tenants, name)
	s.change(w, r, key, func(c *changeRequest) (response, error) {
		if _, err := readExisting(c, key, notFound("tenant", name), tenantOf); err != nil {
			return response{}, err
		}
		interfaces, err := c.tx.All(store.Prefix(store.Interfaces))
		if err != nil {
			return response{}, err
		}
		for _, d := range interfaces {
			var i store.Interface
			if err := d.Into(&i); err != nil {
				return response{}, err
			}
			if i.HasTenant(name) {
				return response{}, refuse(http.StatusConflict, "tenant %s owns groups on %s: reassign or delete them first", name, strings.TrimPrefix(d.Key, store.Prefix(store.Interfaces)))
			}
		}
		tokens, err := c.tx.All(store.Prefix(store.Tokens))
		if err != nil {
			return response{}, err
		}
		for _, d := range tokens {
			var t store.Token
			if err := d.Into(&t); err != nil {
				return response{}, err
			}
			if t.Tenant == name && time.Now().Before(t.Expires) {
				return response{}, refuse(http.StatusConflict, "tenant %s has token %s: revoke it first", name, t.ID)
			}
		}
		reserved, err := c.tx.Keys(store.Prefix(store.Reservations, name))
		if err != nil {
			return response{}, err
		}
		if len(reserved) > 0 {
			return response{}, refuse(http.StatusConflict, "tenant %s has %d reservations: cancel them first", name, len(reserved))
		}
		c.tx.Delete(key)
		return noContent, nil
	})
}

// Login answers with the principal of a token. With the session header, Login also sets a session cookie.
func (s *Server) Login(w http.ResponseWriter, r *http.Request, p api.LoginParams) {
	asked, err := parseBody[struct {
		Token string `json:"token"`
	}](r)
	var t store.Token
	if err == nil {
		t, err = s.checkToken(r, asked.Token)
	}
	if err == nil {
		if wait := s.rateLimits.take(t, s.rateLimitOf(r.Context(), t)); wait > 0 {
			err = &Refusal{Status: http.StatusTooManyRequests, Detail: "rate limit exceeded: send fewer requests per second", RetryAfter: wait}
		}
	}
	if err == nil && p.XHeadgateSession != nil {
		err = startSession(w, t, asked.Token)
	}
	writeResource(w, r, principal(t), err)
}

// principal returns the API form of the token's principal.
func principal(t store.Token) api.Principal {
	return api.Principal{Name: t.Name, Role: api.Role(t.Role), Expires: &t.Expires, Tenant: optional(t.Tenant), Host: optional(t.Host)}
}

// optional returns a pointer to v, or nil if v is the zero value.
func optional[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// tokenOf returns the API form of a token, without its secret.
func tokenOf(t store.Token) api.Token {
	return api.Token{Id: t.ID, Name: t.Name, Role: api.Role(t.Role), Tenant: optional(t.Tenant), Host: optional(t.Host), Created: t.Created, Expires: t.Expires}
}

// ListTokens lists all tokens. A tenant's caller gets only that tenant's tokens.
func (s *Server) ListTokens(w http.ResponseWriter, r *http.Request, p api.ListTokensParams) {
	by := principalOf(r)
	out, err := listPage(r.Context(), s.Store, store.Prefix(store.Tokens), p.After, p.Limit, func(t store.Token) (api.Token, bool) {
		return tokenOf(t), by.Tenant == "" || t.Tenant == by.Tenant
	})
	writeResource(w, r, out, err)
}

// Default lifetimes of tokens. joinTokenLifetime is for tokens of role agent.
const (
	defaultTokenLifetime = 90 * 24 * time.Hour
	joinTokenLifetime    = time.Hour
)

// CreateToken creates a token and shows its secret once.
func (s *Server) CreateToken(w http.ResponseWriter, r *http.Request, _ api.CreateTokenParams) {
	want, err := parseBody[api.TokenRequest](r)
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
	s.change(w, r, store.Prefix(store.Tokens), func(c *changeRequest) (response, error) {
		for kind, name := range map[string]string{store.Tenants: t.Tenant, store.Hosts: t.Host} {
			if name == "" {
				continue
			}
			if _, ok, err := c.tx.Get(store.Key(kind, name), nil); err != nil {
				return response{}, err
			} else if !ok {
				return response{}, invalidField(strings.TrimSuffix(kind, "s"), fmt.Errorf("%s does not exist: create it first", name))
			}
		}
		if c.by.Tenant != "" {
			if err := checkTokenQuota(c.tx, c.by.Tenant); err != nil {
				return response{}, err
			}
		}
		if err := c.tx.Put(key, t); err != nil {
			return response{}, err
		}
		c.resource = "tokens/" + id
		c.secretRefusal = "token " + id + " was already created, and its secret is shown only once: revoke it (DELETE /v1/tokens/" + id + ") and create another token with a new Idempotency-Key"
		return respondWith(http.StatusCreated, struct {
			api.Token
			Secret string `json:"token"`
		}{tokenOf(t), secret})
	})
}

// newToken returns the requested token, or a refusal if the caller may not create it.
func newToken(want api.TokenRequest, by store.Token) (t store.Token, err error) {
	t = store.Token{Name: want.Name, Role: store.Role(want.Role), Tenant: valueOr(want.Tenant, ""), Host: valueOr(want.Host, "")}
	life := defaultTokenLifetime
	if t.Role == store.Agent {
		life = joinTokenLifetime
	}
	if want.Lifetime == nil {
		want.Lifetime = want.Life
	}
	if want.Lifetime != nil {
		n, err := strconv.Atoi((*want.Lifetime)[:len(*want.Lifetime)-1])
		if err != nil {
			return t, invalidField("life", err)
		}
		life = time.Duration(n) * map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[(*want.Lifetime)[len(*want.Lifetime)-1]]
	}
	t.Created = time.Now().UTC().Truncate(time.Second)
	t.Expires = t.Created.Add(life)
	if by.Tenant != "" {
		if t.Role != store.TenantRole && t.Role != store.Viewer || t.Tenant != "" && t.Tenant != by.Tenant {
			return t, refuse(http.StatusForbidden, "a tenant can only create tokens of the roles tenant and viewer, for itself")
		}
		t.Tenant = by.Tenant
	}
	switch {
	case t.Role == store.TenantRole && t.Tenant == "":
		err = invalidField("tenant", fmt.Errorf("the role tenant requires a tenant"))
	case t.Role == store.Agent && t.Host == "":
		err = invalidField("host", fmt.Errorf("the role agent requires a host"))
	case t.Role == store.Operator && t.Tenant != "", t.Role == store.Agent && t.Tenant != "":
		err = invalidField("tenant", fmt.Errorf("the role %s does not accept a tenant", t.Role))
	case t.Role != store.Agent && t.Host != "":
		err = invalidField("host", fmt.Errorf("the role %s does not accept a host", t.Role))
	}
	return t, err
}

// DeleteToken revokes a token.
func (s *Server) DeleteToken(w http.ResponseWriter, r *http.Request, id string, _ api.DeleteTokenParams) {
	s.change(w, r, store.Prefix(store.Tokens)+id, func(c *changeRequest) (response, error) {
		keys, err := c.tx.Keys(store.Prefix(store.Tokens) + id)
		if err != nil {
			return response{}, err
		}
		for _, key := range keys {
			var t store.Token
			if _, ok, err := c.tx.Get(key, &t); err != nil || !ok {
				return response{}, err
			}
			if c.by.Tenant != "" && t.Tenant != c.by.Tenant {
				continue
			}
			if err := c.checkIfMatch(tokenOf(t)); err != nil {
				return response{}, err
			}
			c.resource = "tokens/" + id
			c.tx.Delete(key)
			return noContent, nil
		}
		return response{}, notFound("token", id)
	})
}
