package login

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/pki"
)

// TestClient checks that a stored login reaches its service with its token, and no service with another
// authority.
func TestClient(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"items": [{"name": "` + r.Header.Get("Authorization") + `"}]}`))
	}))
	if s.TLS, err = pki.Server(pair.Chain(authority.Cert), nil); err != nil {
		t.Fatal(err)
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()

	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	all, err := Load()
	if err != nil || len(all.Profiles) > 0 {
		t.Fatalf("logins before the first: %+v, %v", all, err)
	}
	all.Profiles["shop"], all.Newest = Credentials{URL: s.URL, Token: "secret", Pin: authority.Hash()}, "shop"
	if err := all.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "headgate", "logins.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of logins: %v, %v", info, err)
	}
	l, err := Find("shop")
	if err != nil {
		t.Fatal(err)
	}
	request := func(l Credentials) (api.TenantList, *http.Response, error) {
		c, err := l.Client(RequestTimeout)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.ListTenants(t.Context(), nil)
		got, err := api.Decode[api.TenantList](r, err)
		return got, r, err
	}
	got, r, err := request(l)
	if err != nil || len(got.Items) != 1 || got.Items[0].Name == nil || *got.Items[0].Name != "Bearer secret" {
		t.Fatalf("%+v, %v", got, err)
	}
	file := filepath.Join(dir, "authority.pem")
	if err := WriteAuthority(file, r.TLS, l.Pin); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(text)) != strings.TrimSpace(string(authority.Cert)) {
		t.Errorf("the written authority is %s, %v", text, err)
	}
	if err := WriteAuthority(file, &tls.ConnectionState{}, l.Pin); !errors.Is(err, pki.ErrPin) {
		t.Errorf("an authority that the server did not send: %v", err)
	}
	l.Pin = "another"
	if _, _, err := request(l); !errors.Is(err, pki.ErrPin) {
		t.Errorf("a service with another authority: %v", err)
	}
	if _, err := (Credentials{URL: "http://127.0.0.1"}).Client(0); err == nil || !strings.Contains(err.Error(), "not the URL of a service") {
		t.Errorf("a client without TLS: %v", err)
	}
}
