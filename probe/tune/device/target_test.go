package device

import (
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Only the limit changes. Guarantees that exceed the new limit are an error.
func TestDocument(t *testing.T) {
	const before = `kind: Interface
dev: eth0
perspective: host
engine: htb
out:
  limit: 1Gbit
  groups:
    - name: web
      guarantee: 40%
      match:
        - {dport: 443}
    - name: rest
      guarantee: 300Mbit
      default: true
`
	set, err := config.Parse("eth0.yaml", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	target := NewTarget("eth0")
	target.Interface, target.Source = set.Interfaces[0].Resolved.Interface, "eth0.yaml"
	if !target.Limits(probe.Out) || target.Limits(probe.In) || target.Limit(probe.Out) != unit.Gbit || target.Limit(probe.In) != 0 {
		t.Error("the directions are not those of the file")
	}
	target.SetLimit(probe.Out, 500*unit.Mbit)
	text, changed, err := target.Document()
	if want := strings.Replace(before, "1Gbit", "500Mbit", 1); err != nil || text != want || len(changed.Interfaces) != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	target.SetLimit(probe.Out, 400*unit.Mbit)
	if _, _, err := target.Document(); err == nil || !strings.Contains(err.Error(), "guarantees total") {
		t.Errorf("guarantees of 460 Mbit in 400: %v", err)
	}
	if again := set.Interfaces[0].Out.Limit; again != unit.Gbit {
		t.Errorf("the limit of the parsed configuration is now %v", again)
	}
}
