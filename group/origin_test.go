package group

import (
	"encoding/json"
	"testing"
)

// Each origin is parsed, printed and stored with its word; a document without origin is that of a file.
func TestOrigin(t *testing.T) {
	for _, c := range []struct {
		origin       Origin
		word, stored string
	}{
		{OriginFile, "file", `{"name":"a"}`},
		{OriginTenant, "tenant", `{"name":"a","origin":"tenant"}`},
		{OriginReservation, "reservation", `{"name":"a","origin":"reservation"}`},
		{OriginRelay, "relay", `{"name":"a","origin":"relay"}`},
	} {
		if got, err := ParseOrigin(c.word); got != c.origin || err != nil || c.origin.String() != c.word {
			t.Errorf("%s is parsed as %q (%v) and printed as %s", c.word, string(got), err, c.origin)
		}
		text, err := json.Marshal(Group{Name: "a", Origin: c.origin})
		if string(text) != c.stored || err != nil {
			t.Errorf("%s is stored as %s (%v), want %s", c.word, text, err, c.stored)
		}
		var read Group
		if err := json.Unmarshal([]byte(c.stored), &read); read.Origin != c.origin || err != nil {
			t.Errorf("%s is read as %q, %v", c.stored, string(read.Origin), err)
		}
	}
	for word, want := range map[string]Origin{"file": OriginFile, "later": "later"} {
		var read Origin
		if err := json.Unmarshal([]byte(`"`+word+`"`), &read); read != want || err != nil {
			t.Errorf("%s is read as %q, %v", word, string(read), err)
		}
	}
	for _, word := range []string{"", "controller", "Tenant"} {
		if _, err := ParseOrigin(word); err == nil {
			t.Errorf("%q is an origin", word)
		}
	}
}

// A change of origin alone changes nothing that is enforced.
func TestOriginIsNotEnforced(t *testing.T) {
	resolve := func(o Origin) Tree {
		d := Direction{Limit: 1e6, Groups: []Group{{Name: "a", Default: true, Origin: o}}}
		tree, problems := d.Resolve("out", true)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return tree
	}
	was, is := resolve(OriginFile), resolve(OriginTenant)
	if changes := Diff("out", &was, &is); len(changes) > 0 || !was.Equal(is) {
		t.Errorf("a change of origin makes the changes %v", changes)
	}
}
