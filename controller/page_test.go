package controller_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/store"
)

// A tenant pages through its own resources; neither the pages nor their cursors reveal those of others.
func TestPagesOfTenants(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	for _, host := range []string{"h0", "h2", "h3", "h4"} {
		s.must(200, "PUT", "/v1/hosts/"+host, `{}`)
		text := strings.ReplaceAll(shared, `"tenant": "b"`, `"tenant": "a"`)
		if host != "h3" {
			text = strings.ReplaceAll(shared, `"tenant": "a"`, `"tenant": "b"`)
		}
		s.must(200, "PUT", "/v1/hosts/"+host+"/interfaces/eth0", text)
	}
	pages := func(token string, limit int) (names []string) {
		t.Helper()
		for after := ""; ; {
			var p struct {
				Items []struct{ Name string }
				Next  string
			}
			s.mustAs(token, 200, "GET", fmt.Sprintf("/v1/hosts?limit=%d%s", limit, after), "").into(t, &p)
			for _, h := range p.Items {
				names = append(names, h.Name)
			}
			if len(p.Items) != limit && p.Next != "" {
				t.Errorf("a page of %d has %+v", limit, p)
			}
			if p.Next == "" {
				return names
			}
			if of, err := base64.RawURLEncoding.DecodeString(p.Next); err != nil || string(of) != names[len(names)-1] {
				t.Errorf("after %v the cursor is %q, %v", names, of, err)
			}
			after = "&after=" + p.Next
		}
	}
	for limit := 1; limit < 4; limit++ {
		if got := fmt.Sprint(pages(a, limit)); got != "[h1 h3]" {
			t.Errorf("with pages of %d a sees %v", limit, got)
		}
		if got := fmt.Sprint(pages(b, limit)); got != "[h0 h1 h2 h4]" {
			t.Errorf("with pages of %d b sees %v", limit, got)
		}
	}
}

// The audit log is searched in parts, and each answer has a cursor to where its search ended.
func TestAuditInParts(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	const n, together = 4500, 500
	began := time.Now().Add(-time.Hour)
	for at := 0; at < n; at += together {
		if _, err := s.store.Do(t.Context(), "audit", func(tx *store.Tx) error {
			for k := at; k < at+together; k++ {
				e := store.AuditEntry{At: began.Add(time.Duration(k) * 200 * time.Millisecond), By: "b", Tenant: "b", Resource: "interfaces/h1/eth7/out/b/x"}
				if k < 2 {
					e.By, e.Tenant, e.Resource = "a", "a", "interfaces/h1/eth0/out/a/x"
				}
				e.ID = fmt.Sprintf("%016x-unseen", e.At.UnixNano())
				if err := tx.Put(store.Key(store.Audit, e.ID), e); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(token, path string) (items, pages int) {
		t.Helper()
		for before := ""; ; {
			var p struct {
				Items []struct{ By string }
				Next  string
			}
			s.mustAs(token, 200, "GET", path+"?limit=1000"+before, "").into(t, &p)
			for _, e := range p.Items {
				if e.By == "b" {
					t.Errorf("%s shows an entry of another tenant", path)
				}
			}
			items, pages = items+len(p.Items), pages+1
			if p.Next == "" || pages > 10 {
				return items, pages
			}
			if strings.Contains(p.Next, "unseen") {
				t.Errorf("a cursor reveals an entry of another tenant: %s", p.Next)
			}
			before = "&before=" + p.Next
		}
	}
	if items, pages := read(a, "/v1/audit"); items != 2 || pages != 3 {
		t.Errorf("tenant a sees %d changes on %d pages", items, pages)
	}
	if items, pages := read(s.operator, "/v1/hosts/h1/interfaces/eth0/history"); items != 3 || pages != 3 {
		t.Errorf("the interface has %d changes on %d pages", items, pages)
	}
}
