package group

import "fmt"

// Origin is what created a group. It is for people and programs that read groups: enforcement does
// not depend on it, and neither do Tree, Diff and Equal.
type Origin string

const (
	// OriginFile is a configuration of the operator: a file, or a request to the API. It is the zero
	// Origin, so that documents without an origin have it.
	OriginFile Origin = ""
	// OriginTenant is a tenant's request, inside a group that the operator assigned to the tenant.
	OriginTenant Origin = "tenant"
	// OriginReservation is a reservation of network bandwidth whose packets the interface sends. No
	// configuration has such groups: the agent adds them (agent/reserved).
	OriginReservation Origin = "reservation"
	// OriginRelay is a relay, for the traffic that it carries for others. Nothing creates such
	// groups yet.
	OriginRelay Origin = "relay"
)

// origins are all origins.
var origins = []Origin{OriginFile, OriginTenant, OriginReservation, OriginRelay}

// String returns the word for the origin: "file" for the zero Origin.
func (o Origin) String() string {
	if o == OriginFile {
		return "file"
	}
	return string(o)
}

// ParseOrigin parses the word for an origin.
func ParseOrigin(s string) (Origin, error) {
	for _, o := range origins {
		if s == o.String() {
			return o, nil
		}
	}
	return OriginFile, fmt.Errorf("%q is not an origin: write file, tenant, reservation or relay", s)
}

// MarshalText formats the origin with String.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText keeps a word that this version does not know: an agent must be able to read the
// documents of a later controller.
func (o *Origin) UnmarshalText(b []byte) error {
	if *o = Origin(b); *o == "file" {
		*o = OriginFile
	}
	return nil
}

// Origins returns the groups, by direction and path ("out/web"), whose origin is not OriginFile.
func (i Interface) Origins() map[string]Origin {
	out := map[string]Origin{}
	i.eachDirection(func(direction string, d *Direction) {
		eachGroup(d.Groups, direction, "", func(_, path string, g Group) {
			if g.Origin != OriginFile {
				out[direction+"/"+path] = g.Origin
			}
		})
	})
	return out
}
