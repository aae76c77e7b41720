package controller_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store"
)

// The agent of a host whose certificate has expired, because it was off for weeks, or is not valid yet, because a clock was ahead, renews it and connects.
func TestCertificateOfAnotherTime(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{"expired": time.Now().Add(-75 * 24 * time.Hour), "not yet valid": time.Now().Add(45 * 24 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.twoTenants()
			dir := t.TempDir()
			h := s.connect(dir)
			h.Wait(t)
			h.Stop()
			doc, _, err := s.store.Get(t.Context(), store.Key(store.Service, "authority"), 0)
			if err != nil {
				t.Fatal(err)
			}
			var pair pki.KeyPair
			if err := doc.Into(&pair); err != nil {
				t.Fatal(err)
			}
			authority, err := pki.ReadAuthority(pair)
			if err != nil {
				t.Fatal(err)
			}
			other, err := authority.Issue(pki.Template{Name: "h1", Validity: 30 * 24 * time.Hour, At: at})
			if err != nil {
				t.Fatal(err)
			}
			cert, err := pki.Certificate(other.Cert)
			if err != nil {
				t.Fatal(err)
			}
			key := store.Key(store.Hosts, "h1")
			if _, err := s.store.Do(t.Context(), key, func(tx *store.Tx) error {
				return tx.Put(key, store.Host{Name: "h1", Serials: []string{cert.SerialNumber.Text(16)}})
			}); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "identity.json")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var identity map[string]any
			if err := json.Unmarshal(text, &identity); err != nil {
				t.Fatal(err)
			}
			identity["cert"], identity["key"] = other.Cert, other.Key
			delete(identity, "checksum")
			if text, err = json.Marshal(identity); err == nil {
				err = os.WriteFile(file, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.must(200, "PUT", group("rest"), `{"guarantee": "11%", "default": true}`)
			again := s.connect(dir)
			again.Wait(t)
		})
	}
}
