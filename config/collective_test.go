package config

import (
	"reflect"
	"testing"

	"headgate/collective"
)

func TestCollective(t *testing.T) {
	const file = "testdata/collective.yaml"
	set, err := Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Collective{
		{collective.Policy{Name: "db", Cgroup: "/system.slice/db.service"}, file, 1},
		{collective.Policy{Name: "all", Cgroup: "/"}, file, 5},
	}
	if !reflect.DeepEqual(set.Collectives, want) || len(set.Interfaces) > 0 {
		t.Errorf("%+v", set)
	}
}
