package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/store"
)

// A tenant without groups is deleted, however many tokens and interfaces others have.
func TestDeleteTenantOfMany(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/tenants/a", `{}`)
	s.must(200, "PUT", "/v1/tenants/b", `{}`)
	for n := range 2 {
		if _, err := s.store.Do(t.Context(), "x", func(tx *store.Tx) error {
			for i := range 750 {
				name := fmt.Sprintf("%04d", 750*n+i)
				if err := tx.Put(store.Key(store.Tokens, name), store.Token{ID: name, Role: store.TenantRole, Tenant: "b", Expires: time.Now().Add(time.Hour)}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.store.Do(t.Context(), "x", func(tx *store.Tx) error {
		for i := range 800 {
			if err := tx.Put(store.Key(store.Interfaces, fmt.Sprint("h", i), "eth0"), &store.Interface{Owners: map[string]string{"out/b": "b"}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if r := s.must(409, "DELETE", "/v1/tenants/b", ""); !strings.Contains(r.text, "owns groups on h0/eth0") {
		t.Errorf("deleting a tenant with groups: %s", r.text)
	}
	s.must(204, "DELETE", "/v1/tenants/a", "")
}
