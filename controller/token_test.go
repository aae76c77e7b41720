package controller_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// tokens returns the tokens in the store.
func tokens(t *testing.T, s *store.Store) (all []store.Token) {
	t.Helper()
	docs, _, err := s.All(t.Context(), store.Prefix(store.Tokens), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		var v store.Token
		if err := d.Into(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// The first operator token is on disk before it is valid, and the start after a crash continues with it. It
// is created if no operator token is valid, whatever other tokens exist.
func TestFirstToken(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	file := filepath.Join(t.TempDir(), "operator.token")
	var last store.Token
	var made bool
	first := func() (err error) {
		last, made, err = controller.EnsureOperatorTokenFile(t.Context(), s, file)
		return err
	}
	readFile := func(name string) string {
		text, _ := os.ReadFile(name)
		return string(text)
	}
	forget := func() {
		t.Helper()
		if _, err := s.Do(t.Context(), "tokens", func(tx *store.Tx) error {
			keys, err := tx.Keys(store.Prefix(store.Tokens))
			for _, k := range keys {
				tx.Delete(k)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(file)
	}
	good := func(secret string) {
		t.Helper()
		if got := readFile(file); got != secret+"\n" {
			t.Errorf("token file: %q, want %q", got, secret)
		}
		if _, err := os.Stat(file + ".new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary token file is left behind: %v", err)
		}
		if _, made, err := controller.EnsureOperatorToken(t.Context(), s, secret); !made || err != nil {
			t.Errorf("the token in the file is not valid: %v", err)
		}
	}

	// No token is created if its file cannot be written.
	if err := os.Mkdir(file+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first(); err == nil || len(tokens(t, s)) > 0 {
		t.Errorf("tokens although the file cannot be written: %v, %v", tokens(t, s), err)
	}
	os.Remove(file + ".new")

	// A crash before the token was valid, after, and while its file was written.
	secret := server.NewSecret()
	for what, before := range map[string]func(){
		"before": func() {},
		"after":  func() { controller.EnsureOperatorToken(t.Context(), s, secret) },
	} {
		forget()
		os.WriteFile(file+".new", []byte(secret+"\n"), 0o600)
		before()
		if err := first(); err != nil {
			t.Error(what, err)
		}
		good(secret)
	}
	forget()
	os.WriteFile(file+".new", []byte(secret[:20]), 0o600)
	if err := first(); err != nil || strings.HasPrefix(readFile(file), secret[:20]) {
		t.Errorf("truncated secret: %q, %v", readFile(file), err)
	}
	was := readFile(file)
	good(strings.TrimSpace(was))

	// No token is created while an operator token is valid; a tenant's token and an expired one do not count.
	if err := first(); err != nil || made || readFile(file) != was || len(tokens(t, s)) != 1 {
		t.Errorf("tokens: %v, %v", tokens(t, s), err)
	}
	forget()
	if _, err := s.Do(t.Context(), "tokens", func(tx *store.Tx) error {
		return errors.Join(
			tx.Put(store.Key(store.Tokens, "a"), store.Token{ID: "a", Role: store.TenantRole, Tenant: "shop", Expires: time.Now().Add(time.Hour)}),
			tx.Put(store.Key(store.Tokens, "b"), store.Token{ID: "b", Role: store.Operator, Expires: time.Now().Add(-time.Hour)}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := first(); err != nil || !made || len(tokens(t, s)) != 3 {
		t.Errorf("tokens: %v, %v", tokens(t, s), err)
	}
	if life := time.Until(last.Expires); (90*24*time.Hour - life).Abs() > time.Minute {
		t.Errorf("the token's lifetime is %v", life)
	}
}
