package ovsdb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

const someUUID = "550e8400-e29b-41d4-a716-446655440000"

// The notations of RFC 7047, section 5.1, in both directions.
func TestNotations(t *testing.T) {
	for _, c := range []struct {
		text string // as it is written
		into any
		want any
	}{
		{`["uuid","` + someUUID + `"]`, new(uuid), uuid(someUUID)},
		{`["set",[]]`, new(setOf[string]), setOf[string](nil)},
		{`["set",["a","b"]]`, new(setOf[string]), setOf[string]{"a", "b"}},
		{`["set",["set"]]`, new(setOf[string]), setOf[string]{"set"}},
		{`["set",[-1,3]]`, new(setOf[int64]), setOf[int64]{-1, 3}},
		{`["set",[["uuid","` + someUUID + `"]]]`, new(setOf[uuid]), setOf[uuid]{someUUID}},
		{`["map",[]]`, new(mapOf[string]), mapOf[string]{}},
		{`["map",[["a","1"],["b","2"]]]`, new(mapOf[string]), mapOf[string]{"a": "1", "b": "2"}},
		{`["map",[["netdev",["uuid","` + someUUID + `"]]]]`, new(mapOf[uuid]), mapOf[uuid]{"netdev": someUUID}},
	} {
		if err := json.Unmarshal([]byte(c.text), c.into); err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := reflect.ValueOf(c.into).Elem().Interface(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %#v, want %#v", c.text, got, c.want)
		}
		if text, err := json.Marshal(c.want); err != nil || string(text) != c.text {
			t.Errorf("%#v is written %s (%v), want %s", c.want, text, err, c.text)
		}
	}
	if text, err := json.Marshal(setOf[named]{"port1"}); err != nil || string(text) != `["set",[["named-uuid","port1"]]]` {
		t.Errorf("a name is written %s, %v", text, err)
	}
	// The short form of a set of one element.
	var ids setOf[uuid]
	if err := json.Unmarshal([]byte(`["uuid","`+someUUID+`"]`), &ids); err != nil || !reflect.DeepEqual(ids, setOf[uuid]{someUUID}) {
		t.Errorf("one UUID is the set %v, %v", ids, err)
	}
	var numbers setOf[int64]
	if err := json.Unmarshal([]byte(`7`), &numbers); err != nil || !reflect.DeepEqual(numbers, setOf[int64]{7}) {
		t.Errorf("one number is the set %v, %v", numbers, err)
	}
}

func TestNotationsRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		into any
		want string
	}{
		{`["uuid","550E8400-e29b-41d4-a716-446655440000"]`, new(uuid), "is not a UUID"},
		{`["uuid","550e8400e-29b-41d4-a716-446655440000"]`, new(uuid), "is not a UUID"},
		{`["uuid","1"]`, new(uuid), "is not a UUID"},
		{`["named-uuid","a"]`, new(uuid), "is not a reference to a row"},
		{`"` + someUUID + `"`, new(uuid), "is not a reference to a row"},
		{`["uuid"]`, new(uuid), "is not a reference to a row"},
		{`["set",["a","a"]]`, new(setOf[string]), `has "a" twice`},
		{`["set",[1]]`, new(setOf[string]), "cannot unmarshal number"},
		{`["set",[null]]`, new(setOf[string]), "null is not a value"},
		{`["set",null]`, new(setOf[string]), "is not a set"},
		{`["set","a"]`, new(setOf[string]), "is not a set"},
		{`["set",["a"],1]`, new(setOf[string]), "cannot unmarshal array"},
		{`["map",[]]`, new(setOf[string]), "cannot unmarshal array"},
		{`1.5`, new(setOf[int64]), "cannot unmarshal number"},
		{`9223372036854775808`, new(setOf[int64]), "cannot unmarshal number"},
		{`{"a":"b"}`, new(mapOf[string]), "is not a map"},
		{`["set",[]]`, new(mapOf[string]), "is not a map"},
		{`["map",[["a"]]]`, new(mapOf[string]), "is not a [KEY, VALUE]"},
		{`["map",[["a","b","c"]]]`, new(mapOf[string]), "is not a [KEY, VALUE]"},
		{`["map",["a","b"]]`, new(mapOf[string]), "is not a [KEY, VALUE]"},
		{`["map",[["a","b"],["a","c"]]]`, new(mapOf[string]), `the key "a" twice`},
		{`["map",[["a",null]]]`, new(mapOf[string]), "null is not a value"},
		{`["map",[[1,"a"]]]`, new(mapOf[string]), "cannot unmarshal number"},
	} {
		wantError(t, json.Unmarshal([]byte(c.text), c.into), c.want)
	}
}

// An error of a value names the table, the row and the column.
func TestRowErrors(t *testing.T) {
	columns := func(changed, value string) map[string]json.RawMessage {
		r := map[string]json.RawMessage{"target": []byte(`"tcp:192.0.2.1"`), "is_connected": []byte("true"), "role": []byte(`"master"`)}
		if r[changed] = []byte(value); value == "" {
			delete(r, changed)
		}
		return r
	}
	requested := []string{"target", "is_connected", "role"}
	for _, c := range []struct{ column, value, want string }{
		{"target", "7", "cannot unmarshal number"},
		{"target", "null", "it has no value"},
		{"is_connected", "", "it has no value"},
		{"role", `["set",[1]]`, "cannot unmarshal number"},
		{"role", `["map",[]]`, "cannot unmarshal array"},
	} {
		_, err := decodeRow("Controller", someUUID, requested, columns(c.column, c.value))
		wantError(t, err, "the column "+c.column+" of the table Controller, row "+someUUID, c.want)
	}
	got, err := decodeRow("Controller", someUUID, requested, columns("role", `"other"`))
	if err != nil {
		t.Fatal(err)
	}
	want := &controllerRow{target: "tcp:192.0.2.1", connected: true, role: setOf[string]{"other"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the row is %+v, want %+v", got, want)
	}
}

// What is written is read as the same value.
func TestNotationsRoundTrip(t *testing.T) {
	roundTrip := func(t *rapid.T, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, back.Interface()); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := back.Elem().Interface(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", v) {
			t.Fatalf("%s is read as %q, was %q", text, got, v)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, setOf[string](rapid.SliceOfDistinct(rapid.String(), rapid.ID).Draw(t, "strings")))
		roundTrip(t, setOf[int64](rapid.SliceOfDistinct(rapid.Int64(), rapid.ID).Draw(t, "integers")))
		roundTrip(t, setOf[bool](rapid.SliceOfDistinct(rapid.Bool(), rapid.ID).Draw(t, "booleans")))
		roundTrip(t, mapOf[string](rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "map")))
		id := rapid.StringMatching(`[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}`).Draw(t, "uuid")
		roundTrip(t, setOf[uuid]{uuid(id)})
		roundTrip(t, mapOf[uuid]{"a": uuid(id)})
	})
}
