package store

import (
	"fmt"
	"strings"
	"testing"
)

// Tenants take turns, the requests of one are in order, and what is put back comes first.
func TestTurns(t *testing.T) {
	q := &queue{waiting: map[string][]*request{}}
	n := 0
	add := func(tenants string) {
		for _, tenant := range tenants {
			n++
			q.add(&request{tenant: fmt.Sprint(string(tenant), n)[:1], revision: int64(n)})
		}
	}
	taken := func(most int) (text string, all []*request) {
		var parts []string
		all = q.take(most)
		for _, r := range all {
			parts = append(parts, fmt.Sprint(r.tenant, r.revision))
		}
		return strings.Join(parts, " "), all
	}
	add("aaaabac")
	got, all := taken(5)
	if want := "a1 b5 c7 a2 a3"; got != want {
		t.Fatalf("took %s, want %s", got, want)
	}
	q.putBack(all[2:])
	add("b")
	if got, _ := taken(10); got != "c7 a2 b8 a3 a4 a6" {
		t.Errorf("then took %s", got)
	}
	if got, _ := taken(1); got != "" || len(q.waiting) != 0 {
		t.Errorf("an empty queue gives %s", got)
	}
}
