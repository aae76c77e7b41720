package server

import (
	"net/http"
	"slices"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// tenantGroup is a group that the operator assigned to a tenant.
type tenantGroup struct {
	Host           string `json:"host"`
	Dev            string `json:"dev"`
	Direction      string `json:"direction"`
	Group          string `json:"group"`
	GuaranteedBps  int64  `json:"guaranteed_bps"`
	CeilingBps     int64  `json:"ceiling_bps,omitempty"`
	UnallocatedBps int64  `json:"unallocated_bps"`
}

// key is the group's sort key and page cursor.
func (g tenantGroup) key() string {
	return strings.Join([]string{g.Host, g.Dev, g.Direction, g.Group}, " ")
}

// ListTenantGroups lists the groups that the operator assigned to a tenant, on all hosts, without the
// groups that the tenant created in them. A tenant may list only its own.
func (s *Server) ListTenantGroups(w http.ResponseWriter, r *http.Request, name string, p api.ListTenantGroupsParams) {
	_, err := get[store.Tenant](s, r, store.Key(store.Tenants, name), notFound("tenant", name))
	if by := principalOf(r); err == nil && by.Tenant != "" && by.Tenant != name {
		err = notFound("tenant", name)
	}
	var hosts map[string]hostInterfaces
	if err == nil {
		hosts, err = s.readHostInterfaces(r)
	}
	var all []tenantGroup
	for host, interfaces := range hosts {
		for _, i := range interfaces {
			if err != nil || !i.HasTenant(name) {
				continue
			}
			for _, direction := range directions {
				var groups []groupState
				groups, err = groupStates(i, direction, store.Token{})
				for _, g := range groups {
					if i.Owners[direction+"/"+g.Path] == name {
						all = append(all, tenantGroup{host, i.Dev, direction, g.Path, g.GuaranteedBps, g.CeilingBps, g.UnallocatedBps})
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
		out, err = pageOf(all, tenantGroup.key, p.After, p.Limit)
	}
	writeResource(w, r, out, err)
}
