package config

import (
	"reflect"
	"testing"
)

func TestControllers(t *testing.T) {
	set, err := Parse("-", []byte("kind: Controllers\nstore: 9000\nmembers:\n  - {name: c1, address: 10.0.0.1}\n  - {name: c2, address: fd00::2}\n  - {name: c3, address: c3.example.org}\n"))
	want := []Controllers{{
		File: "-", Line: 1, API: 8420, Agents: 8421, Store: 9000, Peers: 8423,
		Members: []Member{{"c1", "10.0.0.1"}, {"c2", "fd00::2"}, {"c3", "c3.example.org"}},
	}}
	if err != nil || !reflect.DeepEqual(set.Controllers, want) {
		t.Errorf("%+v, %v", set.Controllers, err)
	}
}
