package store

import (
	"maps"
	"slices"
	"strings"
	"time"

	"headgate/group"
)

// Interface is the whole intent for one interface of a host.
type Interface struct {
	group.Interface
	// Owners are tenants by group, "out/web/shop": what is in the group is the tenant's.
	Owners map[string]string `json:"owners,omitempty"`
	// Handed is when a group went from one owner to another, or was removed, as far as there may be a
	// record of what it had before.
	Handed map[string]time.Time `json:"handed,omitempty"`
	// Connections that were put in groups, by name ("tcp 10.0.0.1:443 10.0.0.2:55000").
	Connections map[string]Connection `json:"connections,omitempty"`
}

// Connection was put in a group.
type Connection struct {
	Group string `json:"group"`
	// Tenant is whose program did, "" for an operator.
	Tenant string `json:"tenant,omitempty"`
}

// Owner is the tenant of a group of a direction ("out", "in"): its own, or that of the nearest
// group around it. "" is the operator.
func (i *Interface) Owner(direction, path string) string {
	for at := path; at != ""; at, _ = group.Split(at) {
		if t, ok := i.Owners[direction+"/"+at]; ok {
			return t
		}
	}
	return ""
}

// OwnedSince is from when on whose a group is has had it; the zero time is that nobody else is known.
func (i *Interface) OwnedSince(direction, path string) (since time.Time) {
	for at := path; at != ""; at, _ = group.Split(at) {
		if t := i.Handed[direction+"/"+at]; t.After(since) {
			since = t
		}
		if _, ok := i.Owners[direction+"/"+at]; ok {
			break
		}
	}
	return since
}

// Own says whose a group is; "" is that nobody is named for it.
func (i *Interface) Own(direction, path, tenant string) {
	if i.Owners == nil {
		i.Owners = map[string]string{}
	}
	if tenant == "" {
		delete(i.Owners, direction+"/"+path)
		return
	}
	i.Owners[direction+"/"+path] = tenant
}

// Disown forgets whose the groups in a group are, and that one's.
func (i *Interface) Disown(direction, path string) {
	at := direction + "/" + path
	for k := range i.Owners {
		if k == at || strings.HasPrefix(k, at+"/") {
			delete(i.Owners, k)
		}
	}
}

// Direction is one by its name, nil if it is not limited.
func (i *Interface) Direction(name string) *group.Direction {
	if name == "in" {
		return i.In
	}
	return i.Out
}

// Clone shares nothing with the document.
func (i *Interface) Clone() *Interface {
	c := *i
	c.Out, c.In = i.Out.Clone(), i.In.Clone()
	c.Owners, c.Handed = maps.Clone(i.Owners), maps.Clone(i.Handed)
	c.Connections = maps.Clone(i.Connections)
	return &c
}

// HasTenant tells whether a tenant has anything here.
func (i *Interface) HasTenant(name string) bool {
	for _, t := range i.Owners {
		if t == name {
			return true
		}
	}
	return false
}

// Tenants are all that have something here, sorted.
func (i *Interface) Tenants() []string {
	var all []string
	for _, t := range i.Owners {
		all = append(all, t)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Tenant is one who has groups and tokens.
type Tenant struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Requests a second that its tokens may make; 0 is the ordinary number.
	Requests int `json:"requests,omitempty"`
}

// Host is one whose agent may be spoken to.
type Host struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Revoked     bool   `json:"revoked,omitempty"`
	// Serials are of the certificates with which its agent gets in: the newest, and the one with
	// which that was asked for, until the next renewal. One that joins anew has a single one.
	Serials []string `json:"serials,omitempty"`
}

// Role is what one may do.
type Role string

// Roles. An operator may do everything, a tenant what is its own, a viewer see that, or all if it
// is of no tenant; an agent may have its certificate signed.
const (
	Operator   Role = "operator"
	TenantRole Role = "tenant"
	Viewer     Role = "viewer"
	Agent      Role = "agent"
)

// Token lets somebody in. It is kept at the SHA-256 of its secret, which nobody has but its owner.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Tenant  string    `json:"tenant,omitempty"`
	Host    string    `json:"host,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Collective is a set of connections of a host, as the document of a file.
type Collective struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// AuditEntry is one change that was made.
type AuditEntry struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Role   Role      `json:"role"`
	Tenant string    `json:"tenant,omitempty"`
	What   string    `json:"what"`
	// Resource is what was changed: "interfaces/h1/eth0".
	Resource string `json:"resource,omitempty"`
	Status   int    `json:"status"`
	// Revision is the store's with the change; it is known when it is read.
	Revision int64 `json:"revision,omitempty"`
}
