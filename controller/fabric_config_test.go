package controller_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store/storetest"
)

// listensWithTLS is a network of two switches that connect with TLS.
const listensWithTLS = `kind: Network
name: campus
switches:
  - {id: "00:00:00:00:00:00:00:01", name: north}
  - {id: "00:00:00:00:00:00:00:02"}
listen:
  - {address: "127.0.0.1:%d"}
`

// configure sets the configuration of the network, and returns the answer.
func (s *service) configure(status int, text string) reply {
	s.t.Helper()
	body, err := json.Marshal(api.NetworkConfig{Text: text})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.must(status, "PUT", "/v1/network/config", string(body))
}

// certificate asks for the certificate of a switch.
func (s *service) certificate(name string) (own pki.KeyPair, authority []byte) {
	s.t.Helper()
	request, key, err := pki.Request("any")
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(api.SignSwitchCertificateJSONRequestBody{Switches: []string{name}, Request: string(request)})
	if err != nil {
		s.t.Fatal(err)
	}
	var signed api.SwitchCertificate
	s.must(200, "POST", "/v1/network/certificates", string(body)).into(s.t, &signed)
	if days := time.Until(signed.Expires).Hours() / 24; days < 364 || days > 365 {
		s.t.Errorf("the certificate is valid for %v days", days)
	}
	return pki.KeyPair{Cert: []byte(signed.Certificate), Key: key}, []byte(signed.Authority)
}

// Switches connect with the certificates of the service, each as itself; the configuration of the network says which.
func TestNetworkConfig(t *testing.T) {
	t.Parallel()
	s := start(t)
	network := fmt.Sprintf(listensWithTLS, storetest.Ports(t, 1)[0])
	s.must(404, "GET", "/v1/network/config", "")
	s.must(404, "DELETE", "/v1/network/config", "")
	if r := s.configure(422, "kind: Network\nname: campus\nlinks: [{ends: [s1/1, s2/1], capacity: 0}]\n"); !strings.Contains(r.text, "links[0]") || !strings.Contains(r.text, "no switch or router has the name") {
		t.Error(r.text)
	}
	s.configure(422, "kind: Servers\nservers: []\n")
	if r := s.configure(200, network); !strings.Contains(r.text, "hosts_per_port: 64") {
		t.Error(r.text)
	}
	s.must(200, "GET", "/v1/network/config", "")

	north, authority := s.certificate("north")
	second, _ := s.certificate("0000000000000002")
	if r := s.must(422, "POST", "/v1/network/certificates", `{"switches": ["south"], "request": "x"}`); !strings.Contains(r.text, "neither the name of a switch") {
		t.Error(r.text)
	}
	agent, err := pki.NewAuthority("Headgate")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := agent.Issue(pki.Template{Name: "switches", ClientNames: []string{"0000000000000001"}, Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var at string
	for end := time.Now().Add(10 * time.Second); at == ""; time.Sleep(20 * time.Millisecond) {
		if n := s.settled(0, 0, 0); len(n.Listen) == 1 && n.Listen[0].Error == nil && n.Listen[0].Tls {
			at = n.Listen[0].Address
		}
		if time.Now().After(end) {
			t.Fatal("the controller does not listen with TLS")
		}
	}
	dial := func(own *pki.KeyPair) func(context.Context) (net.Conn, error) {
		c, err := pki.Client(own, authority)
		if err != nil {
			t.Fatal(err)
		}
		if own != nil {
			pair, err := tls.X509KeyPair(own.Cert, own.Key)
			if err != nil {
				t.Fatal(err)
			}
			// A client sends no certificate of an authority that the server does not name, of itself.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", at)
		}
	}
	own := []func(context.Context) (net.Conn, error){dial(&north), dial(&second)}
	for _, c := range []struct {
		what string
		dial func(context.Context) (net.Conn, error)
		want string
	}{
		{"another switch's certificate", own[1], "switch 0000000000000001 has a certificate of switch 0000000000000002"},
		{"another authority's certificate", dial(&foreign), "unknown authority"},
		{"no certificate", dial(nil), "client didn't provide a certificate"},
		{"no TLS", func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", at) }, "requires it: give the switch a certificate"},
	} {
		w := newSwitches(t)
		w.sw = w.sw[:1]
		stop := w.dial(func(ctx context.Context, _ int) (net.Conn, error) { return c.dial(ctx) })
		for end := time.Now().Add(10 * time.Second); !strings.Contains(s.must(200, "GET", "/v1/network/events", "").text, c.want); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: no event with %q in %s", c.what, c.want, s.must(200, "GET", "/v1/network/events", "").text)
			}
		}
		stop()
		s.settled(0, 0, 0)
	}
	w := newSwitches(t)
	w.dial(func(ctx context.Context, n int) (net.Conn, error) { return own[n](ctx) })
	s.settled(2, 2, 0)
	w.ping()
	before := w.rules()

	// A switch that is taken out is disconnected; without a configuration nothing listens. The flows stay.
	s.configure(200, strings.Replace(network, "  - {id: \"00:00:00:00:00:00:00:02\"}\n", "", 1))
	s.settled(1, 0, 1)
	s.must(204, "DELETE", "/v1/network/config", "")
	for end := time.Now().Add(10 * time.Second); len(s.settled(0, 0, 0).Listen) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the controller still listens for switches")
		}
	}
	if after := w.rules(); len(after) < len(before)/2 {
		t.Errorf("%d of %d rules are left", len(after), len(before))
	}
}
