package config

import (
	"reflect"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

func TestServers(t *testing.T) {
	set, err := Load([]string{"testdata/servers.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Servers{{
		File: "testdata/servers.yaml", Line: 1,
		Measure: "path", Capacity: unit.Gbit, Bytes: 5_000_000, Time: 20 * time.Second,
		Servers: []Server{
			{"fra", probe.Address{Host: "fra.example.org", Port: 4950}},
			{"ams", probe.Address{Host: "2001:db8::7", Port: 4950}},
			{"lab", probe.Address{Host: "2001:db8::7", Port: 5000}},
		},
	}}
	if !reflect.DeepEqual(set.Servers, want) || len(set.Interfaces) > 0 {
		t.Errorf("%+v", set)
	}
	set, err = Parse("-", []byte("kind: Servers\nservers: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n"))
	if err != nil || set.Servers[0].Measure != "tokenrate" {
		t.Errorf("%+v, %v", set, err)
	}
}
