package api

import (
	"net/http"
	"slices"
	"strings"

	"headgate/store"
	"headgate/unit"
)

// tenantGroup is a group that a tenant was given.
type tenantGroup struct {
	Host      string    `json:"host"`
	Dev       string    `json:"dev"`
	Direction string    `json:"direction"`
	Group     string    `json:"group"`
	Rate      unit.Rate `json:"rate"`
	Most      unit.Rate `json:"most,omitempty"`
	Free      unit.Rate `json:"free"`
}

func (g tenantGroup) key() string {
	return strings.Join([]string{g.Host, g.Dev, g.Direction, g.Group}, " ")
}

// ListTenantGroups lists what a tenant was given, on all hosts; a tenant itself alone.
func (s *Server) ListTenantGroups(w http.ResponseWriter, r *http.Request, name string, p ListTenantGroupsParams) {
	_, err := get[store.Tenant](s, r, store.Key(store.Tenants, name), "tenant", name)
	if by := principalOf(r); err == nil && by.Tenant != "" && by.Tenant != name {
		err = notFound("tenant", name)
	}
	var hosts map[string]divided
	if err == nil {
		hosts, err = s.dividedOf(r)
	}
	var all []tenantGroup
	for host, interfaces := range hosts {
		for _, i := range interfaces {
			if err != nil || !i.HasTenant(name) {
				continue
			}
			for _, direction := range directions {
				var groups []groupState
				groups, err = states(i, direction, store.Token{})
				for _, g := range groups {
					if i.Owners[direction+"/"+g.Path] == name {
						all = append(all, tenantGroup{host, i.Dev, direction, g.Path, g.Rate, g.Most, g.Free})
					}
				}
				if err != nil {
					break
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b tenantGroup) int { return strings.Compare(a.key(), b.key()) })
	var out page[tenantGroup]
	if err == nil {
		out, err = cut(all, tenantGroup.key, p.After, p.Limit)
	}
	show(w, r, out, err)
}
