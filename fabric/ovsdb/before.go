package ovsdb

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// beforeKey is the key of external_ids in which a bridge, and the table Open_vSwitch, have what they had before
	// Connect. A bridge that has it is connected.
	beforeKey = "headgate-before"

	// managedKey is the key of external_ids of the rows of Controller and SSL that Connect made or adopted.
	managedKey = "headgate"
)

// before is what Connect has changed, in the table Open_vSwitch or in a bridge, as it was.
type before struct {
	Settings map[string]setOf[string] `json:"settings,omitempty"` // by name
	Rows     []savedRow               `json:"rows,omitempty"`     // of Controller or SSL

	// DatapathID is the id that Connect gave a bridge for good, which Open vSwitch had derived; empty if the bridge had one for
	// good.
	DatapathID setOf[string] `json:"datapath_id,omitempty"`
}

// savedRow has the columns of a row that clients write, in the notation of RFC 7047.
type savedRow map[string]json.RawMessage

// managed reports whether Connect made or adopted a row of these external_ids.
func managed(externalIDs mapOf[string]) bool {
	_, connected := externalIDs[beforeKey]
	_, ours := externalIDs[managedKey]
	return connected || ours
}

// readBefore returns what external_ids have; ok is false if they have nothing.
func readBefore(of string, externalIDs mapOf[string]) (b before, ok bool, err error) {
	text, ok := externalIDs[beforeKey]
	if ok {
		err = json.Unmarshal([]byte(text), &b)
	}
	if b.Settings == nil {
		b.Settings = map[string]setOf[string]{}
	}
	if err != nil {
		return b, true, fmt.Errorf("the key %s in external_ids of %s is damaged, so that the configuration before is lost: remove the key with ovs-vsctl, and configure what %s should have: %w", beforeKey, of, of, err)
	}
	return b, ok, nil
}

// write returns the operations that store it in a row, if that has something else.
func (b before) write(table string, id uuid, externalIDs mapOf[string]) ([]operation, error) {
	text, err := json.Marshal(b)
	if err != nil || externalIDs[beforeKey] == string(text) {
		return nil, err
	}
	return setKeys(table, id, "external_ids", map[string]string{beforeKey: string(text)}), nil
}

// save remembers a row that will be changed or removed.
func (b *before) save(columns []column) error {
	saved := savedRow{}
	for _, c := range columns {
		text, err := json.Marshal(c.into)
		if err != nil {
			return err
		}
		if s := string(text); s != `["set",[]]` && s != `["map",[]]` {
			saved[c.name] = text
		}
	}
	b.Rows = append(b.Rows, saved)
	return nil
}

// restore returns the inserts of the saved rows, and their names.
func (b before) restore(table, prefix string) (operations []operation, names setOf[named]) {
	for i, saved := range b.Rows {
		row := map[string]any{}
		for column, value := range saved {
			row[column] = value
		}
		name := named(fmt.Sprint(prefix, i))
		operations, names = append(operations, insert(table, name, row)), append(names, name)
	}
	return operations, names
}

// set changes settings of a row to what Connect wants, and remembers what they were.
func (b *before) set(p *plan, settings []setting, table, bridge string, id uuid, r row) {
	for _, s := range settings {
		now := s.value(r)
		want := s.want(now)
		if sameElements(now, want) {
			continue
		}
		if _, known := b.Settings[s.name()]; !known {
			b.Settings[s.name()] = now
		}
		p.add(s.write(table, id, want)...)
		p.changed(bridge, s.name(), now, want)
	}
}

// reset changes settings back, unless they were changed since.
func (b before) reset(p *plan, settings []setting, table, bridge string, id uuid, r row) {
	for _, s := range settings {
		was, saved := b.Settings[s.name()]
		now := s.value(r)
		if saved && sameElements(now, s.want(was)) {
			p.add(s.write(table, id, was)...)
			p.changed(bridge, s.name(), now, was)
		}
	}
	p.add(mutate(table, whereRow(id), "external_ids", "delete", setOf[string]{beforeKey}))
}

// target returns the target of a saved Controller.
func (r savedRow) target() string {
	var target string
	_ = json.Unmarshal(r["target"], &target) // "" if another client wrote something else
	return target
}

// ssl returns the files of a saved SSL.
func (b before) ssl() []string {
	var r sslRow
	if len(b.Rows) > 0 {
		for _, c := range r.columns() {
			_ = json.Unmarshal(b.Rows[0][c.name], c.into) // "" if another client wrote something else
		}
	}
	return r.files().list()
}

// uuidName returns a part of a name of a row that is inserted, which cannot have a hyphen (RFC 7047, section 5.1, <id>).
func uuidName(id uuid) string { return strings.ReplaceAll(string(id), "-", "_") }
