package ovsdb

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// setting is a value that Connect sets in a row: a column that is a set of strings, or a key of a map, which is a set
// of at most one string. The empty set is the default of ovs-vswitchd.
type setting struct {
	column, key string
	want        func(now setOf[string]) setOf[string]
}

// bridgeSettings returns what a bridge needs for Headgate.
func (b *before) bridgeSettings() []setting {
	// Without the key, the id is the lowest MAC address of the bridge's devices (ovs-vswitchd.conf.db(5), datapath_id): a device that
	// is added makes it another switch, which has no name, no links and no certificate.
	return append(slices.Clone(commonSettings), setting{column: "other_config", key: "datapath-id", want: func(now setOf[string]) setOf[string] {
		if len(now) > 0 {
			return now
		}
		return b.DatapathID
	}})
}

// commonSettings are the same for all bridges.
var commonSettings = []setting{
	// The controller speaks OpenFlow 1.3. Other versions stay, because tools such as ovs-ofctl use them. By default all are
	// enabled.
	{column: "protocols", want: func(now setOf[string]) setOf[string] {
		if len(now) == 0 || slices.Contains(now, "OpenFlow13") {
			return now
		}
		return append(slices.Clone(now), "OpenFlow13")
	}},
	// Without a controller the bridge forwards by the flows that it has. In the other mode it floods, and frames circulate
	// in a network with a loop.
	{column: "fail_mode", want: func(setOf[string]) setOf[string] { return setOf[string]{string(Secure)} }},
	// In-band control adds flows before all others, which flood ARP frames of controllers and managers.
	{column: "other_config", key: "disable-in-band", want: func(setOf[string]) setOf[string] { return setOf[string]{"true"} }},
}

// rootSettings is what all bridges share.
var rootSettings = []setting{
	// Between switches a frame has a VLAN tag before that of its host. By default the second tag is payload, and cannot be
	// matched when the first has been removed.
	{column: "other_config", key: "vlan-limit", want: func(now setOf[string]) setOf[string] {
		if n, err := strconv.Atoi(optional(now)); err == nil && (n == 0 || n >= 2) {
			return now
		}
		return setOf[string]{"2"}
	}},
}

func (s setting) name() string {
	if s.key == "" {
		return s.column
	}
	return s.column + ":" + s.key
}

// value returns the value in a row, sorted.
func (s setting) value(r row) setOf[string] {
	for _, c := range r.columns() {
		if c.name != s.column {
			continue
		}
		switch into := c.into.(type) {
		case *setOf[string]:
			return slices.Sorted(slices.Values(*into))
		case *mapOf[string]:
			if v, ok := (*into)[s.key]; ok {
				return setOf[string]{v}
			}
		}
	}
	return nil
}

// write returns the operations that set the value in a row.
func (s setting) write(table string, id uuid, value setOf[string]) []operation {
	switch {
	case s.key == "":
		return update(table, id, map[string]any{s.column: value})
	case len(value) == 0:
		return []operation{mutate(table, whereRow(id), s.column, "delete", setOf[string]{s.key})}
	}
	return setKeys(table, id, s.column, map[string]string{s.key: value[0]})
}

// Change is a value that Connect or Disconnect changes. A list is empty if the value is the default of ovs-vswitchd.
type Change struct {
	Bridge  string   `json:"bridge,omitempty"` // "" for all bridges of Open vSwitch
	Setting string   `json:"setting"`          // such as "fail_mode", "other_config:vlan-limit", "controller"
	Before  []string `json:"before"`
	After   []string `json:"after"`
}

// plan collects the operations of one transaction, and what they change.
type plan struct {
	operations []operation
	changes    []Change
}

func (p *plan) add(operations ...operation) { p.operations = append(p.operations, operations...) }

func (p *plan) changed(bridge, setting string, before, after []string) {
	list := func(values []string) []string { return append([]string{}, values...) } // not null in JSON
	p.changes = append(p.changes, Change{bridge, setting, list(before), list(after)})
}

// unchanged makes a transaction fail if another client has changed these columns of a row since it was read.
func unchanged(table string, id uuid, r row, columns ...string) operation {
	values := map[string]any{}
	for _, c := range r.columns() {
		if slices.Contains(columns, c.name) {
			values[c.name] = c.into
		}
	}
	return operation{"op": "wait", "table": table, "where": whereRow(id), "columns": slices.Sorted(maps.Keys(values)),
		"until": "==", "rows": []any{values}, "timeout": 0}
}

func sameElements(a, b []string) bool {
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return within(a, b) && within(b, a)
}

// list returns the columns with their values, none if no files are configured.
func (s SSL) list() []string {
	if s == (SSL{}) {
		return nil
	}
	return []string{"private_key=" + s.PrivateKey, "certificate=" + s.Certificate, "ca_cert=" + s.CA}
}

// join returns names for a sentence.
func join(names []string) string { return strings.Join(names, ", ") }
