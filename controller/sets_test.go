package controller

import (
	"encoding/json"
	"testing"
)

// Agents of all versions send rates and sizes as text, and those of earlier versions by other names. The API
// has numbers.
func TestSetsOfAgents(t *testing.T) {
	const want = `[{"connections":[{"base_rtt_ns":2,"id":1,"learned_bps":1500000,"local":"10.0.0.1:5432","pacing_cap_bps":0,"rate_bps":2000000,"remote":"10.0.0.2:40000","rtt_ns":3,"window_cap_bytes":30000},` +
		`{"id":2,"local":"10.0.0.1:5432","remote":"10.0.0.3:40000","weight":4}],"controlling":true,"set":"db"},{"cgroup_missing":true,"connections":[],"set":"backup"}]`
	for name, sent := range map[string]string{
		"present": `[{"set": "db", "controlling": true, "connections": [{"id": 1, "local": "10.0.0.1:5432", "remote": "10.0.0.2:40000", "learned_rate": "1.5Mbit", "rate": "2Mbit",
			"rtt_ns": 3, "base_rtt_ns": 2, "window_cap": "30kB", "pacing_cap": "0bit"}, {"id": 2, "local": "10.0.0.1:5432", "remote": "10.0.0.3:40000", "weight": 4}]},
			{"set": "backup", "cgroup_missing": true, "connections": []}]`,
		"former": `[{"set": "db", "controlling": true, "connections": [{"id": 1, "local": "10.0.0.1:5432", "remote": "10.0.0.2:40000", "needs": "1.5Mbit", "rate": "2Mbit",
			"rtt_ns": 3, "base_rtt_ns": 2, "window": "30kB", "pace": "0bit"}, {"id": 2, "local": "10.0.0.1:5432", "remote": "10.0.0.3:40000", "weight": 4}]},
			{"set": "backup", "waiting": true, "connections": null}]`,
	} {
		states, err := parseStates([]byte(sent))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(states)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s keys: %s", name, got)
		}
	}
	if _, err := parseStates([]byte(`[{"set": "db", "connections": [{"rate": "fast"}]}]`)); err == nil {
		t.Error("a rate that is none is accepted")
	}
}
