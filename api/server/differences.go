package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/store"
)

// Bounds of what an audit entry has of a change, chosen by this project: entries are kept for 90 days.
const (
	// maxDifferences is the number of fields of which an entry has the values, and maxValue the length of a value in bytes.
	maxDifferences, maxValue = 12, 100
	// maxCompared is the size in bytes of documents whose fields are compared. It takes 10 ms, in the transaction.
	maxCompared = 512 << 10
)

// ownersChanged is the beginning of the names of fields that the service keeps for usage records (store.Interface.OwnerChanged).
const ownersChanged = "handed."

// comparedKinds are the kinds of documents whose fields an audit entry shows. Others have secrets, or are records.
var comparedKinds = []string{store.Hosts, store.Interfaces, store.Collectives, store.Probing, store.Network, store.Tenants}

// differencesIn returns the fields that a transaction changes, the first ones of all documents, and how many more there are.
func differencesIn(tx *store.Tx) (all []store.Difference, more int) {
	for _, c := range tx.Changes() {
		if !slices.ContainsFunc(comparedKinds, func(kind string) bool { return strings.HasPrefix(c.Key, store.Prefix(kind)) }) || len(c.Before)+len(c.After) > maxCompared {
			continue
		}
		all = append(all, differences(c.Before, c.After)...)
	}
	if len(all) > maxDifferences {
		all, more = all[:maxDifferences], len(all)-maxDifferences
	}
	return all, more
}

// differences returns the fields in which two JSON documents differ, sorted by name. nil is a document that does not exist.
func differences(before, after []byte) (out []store.Difference) {
	fields := func(text []byte) map[string]string {
		all := map[string]string{}
		var v any
		if json.Unmarshal(text, &v) == nil {
			flatten("", v, all)
		}
		maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, ownersChanged) })
		return all
	}
	old, is := fields(before), fields(after)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if old[name] != is[name] {
			out = append(out, store.Difference{Field: name, Before: old[name], After: is[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, was := old[name]; !was {
			out = append(out, store.Difference{Field: name, After: is[name]})
		}
	}
	slices.SortFunc(out, func(a, b store.Difference) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// flatten adds the fields of a value to all, by name, with their values as JSON. Elements of a list are named by their "name", as
// groups are; other lists are one value.
func flatten(name string, v any, all map[string]string) {
	below := func(field string) string { return strings.TrimPrefix(name+"."+field, ".") }
	switch v := v.(type) {
	case map[string]any:
		for field, value := range v {
			flatten(below(field), value, all)
		}
		return
	case []any:
		names := namesOf(v)
		for i, n := range names {
			element := maps.Clone(v[i].(map[string]any))
			delete(element, "name")
			if len(element) == 0 {
				all[below(n)] = "{}"
			}
			flatten(below(n), element, all)
		}
		if names != nil {
			return
		}
	}
	text, _ := json.Marshal(v)
	all[name] = shortened(string(text))
}

// namesOf returns the names of the elements of a list, nil unless each has another one.
func namesOf(list []any) (names []string) {
	for _, e := range list {
		object, _ := e.(map[string]any)
		name, is := object["name"].(string)
		if !is || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// shortened returns a value with at most maxValue bytes of text, and a hash of the whole if it is longer, so that two long values that differ do so here.
func shortened(text string) string {
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue], "") + fmt.Sprintf("... (%d bytes, %s)", len(text), strings.Trim(etag([]byte(text)), `"`))
}
