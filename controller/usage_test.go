package controller_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/api/agents"
	"headgate/store"
)

const usage = "/v1/usage?since=2026-01-01T00:00:00Z"

// A tenant with groups on a device pattern sees the rates and usage of each matching device. A device
// with a document of its own does not belong to the pattern.
func TestPatterns(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/veth*", shared)
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/veth7", strings.NewReplacer(`"tenant": "a"`, `"tenant": "b"`, `"tenant": "b"`, `"tenant": "a"`).Replace(shared))
	h := s.connect(t.TempDir(), func(h *host) {
		h.Report = func() *agents.Report {
			out := &agents.Report{AtNs: time.Now().UnixNano()}
			for _, dev := range []string{"veth12", "veth7"} {
				out.Devices = append(out.Devices, &agents.DeviceReport{Dev: dev, Names: []string{"out/a", "out/b"}, GuaranteeBps: []uint64{1, 1}, Bytes: []uint64{5, 5}})
			}
			return out
		}
		h.Usage = func(q *agents.UsageQuestion) *agents.UsageAnswer {
			return &agents.UsageAnswer{Id: q.Id, Rows: []*agents.Usage{
				{Dev: "veth12", Group: "out/a", DeliveredBytes: 1}, {Dev: "veth12", Group: "out/b", DeliveredBytes: 2},
				{Dev: "veth7", Group: "out/a", DeliveredBytes: 3}, {Dev: "veth7", Group: "out/b", DeliveredBytes: 4}}}
		}
	})
	h.wait(t)
	for until := time.Now().Add(10 * time.Second); !strings.Contains(s.must(200, "GET", "/v1/hosts/h1", "").text, `"connected":true`) || len(s.rows(s.operator, "/v1/hosts/h1/rates")) == 0; {
		if time.Sleep(50 * time.Millisecond); time.Now().After(until) {
			t.Fatal("no rates within 10 s")
		}
	}
	for token, want := range map[string]string{a: "veth12 a, veth7 b", b: "veth12 b, veth7 a"} {
		for _, path := range []string{"/v1/hosts/h1/rates", usage} {
			if got := strings.Join(s.rows(token, path), ", "); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
	}
}

// rows returns the devices and groups of an answer, sorted.
func (s *service) rows(token, path string) (out []string) {
	s.t.Helper()
	var all struct {
		Items []struct{ Dev, Group string }
	}
	s.mustAs(token, 200, "GET", path, "").into(s.t, &all)
	for _, i := range all.Items {
		out = append(out, i.Dev+" "+i.Group)
	}
	slices.Sort(out)
	return out
}

// Usage records are visible to the group's owner of that time: a new owner reads only what is after the
// change. Agents are not queried for longer than they keep records.
func TestUsageOfOwners(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	oldest := make(chan int64, 100)
	var third atomic.Bool
	h := s.connect(t.TempDir(), func(h *host) {
		h.Usage = func(q *agents.UsageQuestion) *agents.UsageAnswer {
			oldest <- q.Since
			took := uint64(q.Until - q.Since)
			out := &agents.UsageAnswer{Id: q.Id, Rows: []*agents.Usage{{Dev: "eth0", Group: "out/a", Seconds: took}, {Dev: "eth0", Group: "out/b", Seconds: took}}}
			if third.Load() {
				out.Rows = append(out.Rows, &agents.Usage{Dev: "eth0", Group: "out/c", Seconds: took})
			}
			return out
		}
	})
	h.wait(t)
	type rows struct {
		Items []struct {
			Group, Tenant string
			Seconds       int64
		}
	}
	read := func(token string) (out rows) {
		t.Helper()
		s.mustAs(token, 200, "GET", "/v1/usage?since=0001-01-01T00:00:00Z&until=9999-01-01T00:00:00Z", "").into(t, &out)
		return out
	}
	const week, hour = 8 * 24 * 3600, 3600
	if got := read(a); len(got.Items) != 1 || got.Items[0].Group != "a" || got.Items[0].Seconds < week-5 || got.Items[0].Seconds > week+5 {
		t.Fatalf("a reads %+v", got)
	}
	if since := <-oldest; since < time.Now().Unix()-week-5 {
		t.Errorf("the agent is queried since %v", time.Unix(since, 0))
	}
	// The operator makes b the owner of a's group.
	s.must(200, "PATCH", group("a"), `{"tenant": "b"}`, "Content-Type", "application/merge-patch+json")
	if got := read(b); len(got.Items) != 1 || got.Items[0].Group != "b" {
		t.Errorf("right after the change b reads %+v", got)
	}
	if got := read(a); len(got.Items) != 0 {
		t.Errorf("right after the change a reads %+v", got)
	}
	if got := read(s.operator); len(got.Items) != 2 || got.Items[0].Tenant != "" || got.Items[1].Tenant != "b" {
		t.Errorf("the operator reads %+v", got)
	}
	// Simulates an hour later.
	key := store.Key(store.Interfaces, "h1", "eth0")
	if _, err := s.store.Do(t.Context(), key, func(tx *store.Tx) error {
		var i store.Interface
		if _, _, err := tx.Get(key, &i); err != nil {
			return err
		}
		if len(i.OwnerChanged) != 1 {
			t.Errorf("the changes of owners are %v", i.OwnerChanged)
		}
		i.OwnerChanged["out/a"] = i.OwnerChanged["out/a"].Add(-time.Hour)
		return tx.Put(key, i)
	}); err != nil {
		t.Fatal(err)
	}
	got := read(b)
	if len(got.Items) != 2 || got.Items[0].Seconds > hour || got.Items[0].Seconds < hour-65 || got.Items[1].Seconds < week-5 {
		t.Errorf("an hour later b reads %+v", got)
	}
	// A group that was deleted and created again for a has no records of before.
	s.must(204, "DELETE", group("b"), "")
	s.must(200, "PUT", group("b"), `{"guarantee": "20%", "tenant": "a", "match": [{"dst": ["10.2.0.0/16"]}]}`)
	if got := read(a); len(got.Items) != 0 {
		t.Errorf("with b's former group a reads %+v", got)
	}
	// The same holds for a deleted and created interface.
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", shared)
	for _, token := range []string{a, b} {
		if got := read(token); len(got.Items) != 0 {
			t.Errorf("with a deleted and created interface a tenant reads %+v", got)
		}
	}
	// A group that the operator assigns to a tenant is visible to it from that minute on, and not to others.
	third.Store(true)
	s.must(200, "PUT", group("c"), `{"match": [{"dst": ["10.3.0.0/16"]}]}`)
	s.must(200, "PATCH", group("c"), `{"tenant": "a"}`, "Content-Type", "application/merge-patch+json")
	if got := read(a); len(got.Items) != 1 || got.Items[0].Group != "c" || got.Items[0].Seconds > 65 {
		t.Errorf("right after the assignment a reads %+v", got)
	}
	for _, tenant := range []string{`null`, `"b"`} {
		s.must(200, "PATCH", group("c"), `{"tenant": `+tenant+`}`, "Content-Type", "application/merge-patch+json")
	}
	if got := read(b); len(got.Items) != 0 {
		t.Errorf("after a change by way of the operator b reads %+v", got)
	}
}
