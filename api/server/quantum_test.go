package server

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/store"
)

// The options of the engine quantum are returned as written, and an invalid option is refused with the name
// of its field.
func TestQuantumOptions(t *testing.T) {
	const direction = `,"out":{"limit":"10Mbit","groups":[{"name":"a","default":true}]}}`
	read := func(options string) (*store.Interface, error) {
		var d interfaceDoc
		if err := json.Unmarshal([]byte(`{"engine":"quantum"`+options+direction), &d); err != nil {
			return nil, err
		}
		return d.domain("eth0")
	}
	for _, options := range []string{``, `,"quantum":"100ms","overdraft":true`, `,"step":"1.5kB"`, `,"step":"2%"`} {
		i, err := read(options)
		if err != nil {
			t.Fatalf("%s: %v", options, err)
		}
		seen, err := interfaceForOperator(i, store.Token{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range strings.Split(strings.TrimPrefix(options, ","), ",") {
			if !strings.Contains(string(again), o) {
				t.Errorf("options %s are returned as %s", options, again)
			}
		}
		if options == "" && (strings.Contains(string(again), "step") || strings.Contains(string(again), "overdraft")) {
			t.Errorf("no options are returned as %s", again)
		}
	}
	for options, want := range map[string]string{
		`,"quantum":"100"`: `quantum: "100" is not a quantum: write a time such as 1s or 100ms`,
		`,"quantum":"2h"`:  "write a time above 0 and up to 1h0m0s",
		`,"step":"1500"`:   `"1500" is not a step`,
		`,"step":"0B"`:     "would never lend anything",
	} {
		if _, err := read(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}
