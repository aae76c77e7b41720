package store

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/group"
)

// Interface is the complete desired state of one interface of a host.
type Interface struct {
	group.Interface
	// Owners maps groups, such as "out/web/shop", to the tenants that own them and their child groups.
	Owners map[string]string `json:"owners,omitempty"`
	// OwnerChanged is when a group changed its owner or was removed, as long as agents may have usage records
	// of before.
	OwnerChanged map[string]time.Time `json:"handed,omitempty"`
	// Connections are the connections assigned to groups, by name ("tcp 10.0.0.1:443 10.0.0.2:55000").
	Connections map[string]Connection `json:"connections,omitempty"`
}

// Connection is the assignment of a connection to a group.
type Connection struct {
	Group string `json:"group"`
	// Tenant is the tenant that assigned the connection, "" for an operator.
	Tenant string `json:"tenant,omitempty"`
}

// Owner returns the owner of a group in a direction ("out", "in"): the tenant of the group itself or
// of the nearest parent group with one. "" is the operator.
func (i *Interface) Owner(direction, path string) string {
	for at := path; at != ""; at, _ = group.Split(at) {
		if t, ok := i.Owners[direction+"/"+at]; ok {
			return t
		}
	}
	return ""
}

// OwnedSince returns since when the owner of a group has had it; the zero time means that no earlier
// owner is known.
func (i *Interface) OwnedSince(direction, path string) (since time.Time) {
	for at := path; at != ""; at, _ = group.Split(at) {
		if t := i.OwnerChanged[direction+"/"+at]; t.After(since) {
			since = t
		}
		if _, ok := i.Owners[direction+"/"+at]; ok {
			break
		}
	}
	return since
}

// SetOwner sets the owner of a group; "" removes the group's own entry.
func (i *Interface) SetOwner(direction, path, tenant string) {
	if i.Owners == nil {
		i.Owners = map[string]string{}
	}
	if tenant == "" {
		delete(i.Owners, direction+"/"+path)
		return
	}
	i.Owners[direction+"/"+path] = tenant
}

// RemoveOwners removes the owners of a group and its child groups.
func (i *Interface) RemoveOwners(direction, path string) {
	at := direction + "/" + path
	for k := range i.Owners {
		if k == at || strings.HasPrefix(k, at+"/") {
			delete(i.Owners, k)
		}
	}
}

// Direction returns a direction by its name, nil if it has no limit.
func (i *Interface) Direction(name string) *group.Direction {
	if name == "in" {
		return i.In
	}
	return i.Out
}

// Clone returns a deep copy.
func (i *Interface) Clone() *Interface {
	c := *i
	c.Out, c.In = i.Out.Clone(), i.In.Clone()
	c.Owners, c.OwnerChanged = maps.Clone(i.Owners), maps.Clone(i.OwnerChanged)
	c.Connections = maps.Clone(i.Connections)
	return &c
}

// TenantBytes returns the size of what each tenant has in the interface, in bytes of JSON: its groups with all groups in them, and its connections. A group of
// another tenant below is counted with the group that it is in.
func (i *Interface) TenantBytes() map[string]int {
	out := map[string]int{}
	for name, c := range i.Connections {
		if c.Tenant != "" {
			out[c.Tenant] += len(name) + len(c.Group) + len(c.Tenant)
		}
	}
	if len(i.Owners) == 0 {
		return out
	}
	for _, name := range []string{"out", "in"} {
		d := i.Direction(name)
		if d == nil {
			continue
		}
		var add func(all []group.Group, above string)
		add = func(all []group.Group, above string) {
			for _, g := range all {
				path := strings.TrimPrefix(above+"/"+g.Name, "/")
				if owner := i.Owner(name, path); owner == "" {
					add(g.Groups, path)
				} else if text, err := json.Marshal(g); err == nil {
					out[owner] += len(text)
				}
			}
		}
		add(d.Groups, "")
	}
	return out
}

// HasTenant reports whether a tenant owns a group of the interface.
func (i *Interface) HasTenant(name string) bool {
	for _, t := range i.Owners {
		if t == name {
			return true
		}
	}
	return false
}

// Tenants returns the tenants that own a group of the interface, sorted.
func (i *Interface) Tenants() []string {
	var all []string
	for _, t := range i.Owners {
		all = append(all, t)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Tenant is a tenant of the service.
type Tenant struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Requests is the rate limit in requests per second for all tokens of the tenant together; 0 is the
	// default.
	Requests int `json:"requests,omitempty"`
	// Reservations are the bounds of the tenant's reservations; nil permits none.
	Reservations *ReservationBounds `json:"reservations,omitempty"`
}

// Host is a host that is registered with the service.
type Host struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Revoked     bool   `json:"revoked,omitempty"`
	// Serials are the serial numbers of the agent's valid certificates: the newest one, and until the next
	// renewal the one with which the newest was requested. A join leaves a single one.
	Serials []string `json:"serials,omitempty"`
}

// Role is the set of permissions of a token.
type Role string

// Roles. An operator may do everything. A tenant may read and change its own resources. A viewer may
// read the resources of its tenant, or all if it has none. An agent may request a certificate.
const (
	Operator   Role = "operator"
	TenantRole Role = "tenant"
	Viewer     Role = "viewer"
	Agent      Role = "agent"
)

// Token is a bearer token. Its key is the SHA-256 of its secret, which only its owner has.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Tenant  string    `json:"tenant,omitempty"`
	Host    string    `json:"host,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Collective is a connection set of a host, as the text of its configuration file.
type Collective struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// Difference is a field of a document with its values before and after a change, as JSON. "" is a field that does not exist. An
// element of a list is named by its name: out.groups.web.guarantee.
type Difference struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Role   Role      `json:"role"`
	Tenant string    `json:"tenant,omitempty"`
	Change string    `json:"what"`
	// Resource is the resource that was changed, such as "interfaces/h1/eth0".
	Resource string `json:"resource,omitempty"`
	Status   int    `json:"status"`
	// Differences are the changed fields of documents, the first ones of them, and MoreDifferences is the number of others.
	Differences     []Difference `json:"differences,omitempty"`
	MoreDifferences int          `json:"more,omitempty"`
	// Revision is the store's revision with the change. It is set when the entry is read.
	Revision int64 `json:"revision,omitempty"`
}
