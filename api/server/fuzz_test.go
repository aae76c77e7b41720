package server

import (
	"encoding/json"
	"slices"
	"testing"

	"headgate.dev/headgate/group"
)

// FuzzInterface: an interface of a request is accepted, with a document that means the same when it is read again, or refused.
func FuzzInterface(f *testing.F) {
	f.Add([]byte(`{"engine":"htb","out":{"limit":"100Mbit","spare":"guarantee","groups":[{"name":"a","guarantee":"40%","ceiling":"80Mbit","tenant":"a","match":[{"dst":["10.1.0.0/16"],"dport":["80","100-200"]}]},{"name":"rest","default":true}]}}`))
	f.Add([]byte(`{"quantum":"1500B","overhead":{"frame":"18B","minimum":"64B"},"step":"1Mbit","in":{"limit":"0bit","groups":[]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var doc interfaceDoc
		if json.Unmarshal(text, &doc) != nil {
			return
		}
		i, err := doc.domain("eth0")
		if err != nil || checkInterface(i, operatorField) != nil {
			return
		}
		i.TenantBytes()
		stored, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		again := *i
		again.Out, again.In = nil, nil
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		if _, problems := again.Resolve(); len(problems) > 0 {
			t.Errorf("%s is refused when it is read again: %v", stored, problems)
		}
	})
}

// FuzzPatch: any value of a field of a group is set or refused.
func FuzzPatch(f *testing.F) {
	for _, name := range []string{"guarantee", "ceiling", "priority", "match", "default", "join", "each", "clients"} {
		f.Add(name, []byte(`"10%"`))
		f.Add(name, []byte(`[{"dport":["80"]}]`))
		f.Add(name, []byte(`null`))
	}
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		if !json.Valid(value) || !slices.Contains([]string{"guarantee", "ceiling", "priority", "match", "default", "join", "each", "clients"}, name) {
			return // the specification refuses other fields
		}
		var g group.Group
		if set(&g, name, value) == nil {
			if _, err := json.Marshal(g); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzCursor: any cursor gives a page, or is refused, and following cursors ends.
func FuzzCursor(f *testing.F) {
	all := []string{"a", "b", "c", "d", "e"}
	f.Add("", 2)
	f.Add("YQ", 1)
	f.Fuzz(func(t *testing.T, after string, limit int) {
		if limit < 1 {
			return // the specification refuses it
		}
		for range len(all) + 1 {
			out, err := pageOf(all, func(s string) string { return s }, &after, &limit)
			if err != nil || out.Next == "" {
				return
			}
			after = out.Next
		}
		t.Errorf("following %q does not end", after)
	})
}
