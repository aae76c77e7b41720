package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// call connects a client to a server and returns the errors of both.
func call(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			err = c.(*tls.Conn).Handshake()
			c.Write([]byte("x"))
		}
		done <- err
	}()
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: client}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1)) // a rejection of the client's certificate is received here
	}
	return errors.Join(err, <-done)
}

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority, l Template) KeyPair {
	t.Helper()
	p, err := a.Issue(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Which connections are accepted.
func TestTLS(t *testing.T) {
	ours, others := authority(t), authority(t)
	local := []string{"127.0.0.1", "localhost"}
	server := issue(t, ours, Template{Name: "controller", Hosts: local, Validity: time.Hour})
	elsewhere := issue(t, ours, Template{Name: "controller", Hosts: []string{"192.0.2.1"}, Validity: time.Hour})
	over := issue(t, ours, Template{Name: "controller", Hosts: local, Validity: -time.Minute})
	agent := issue(t, ours, Template{Name: "h1", Validity: time.Hour})
	request, key, err := Request("another name")
	if err != nil {
		t.Fatal(err)
	}
	signed, err := ours.Sign(request, Template{Name: "h2", Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Certificate(signed); err != nil || c.Subject.CommonName != "h2" {
		t.Errorf("the name in the request was used: %v, %v", c.Subject, err)
	}
	foreign := issue(t, others, Template{Name: "h1", Validity: time.Hour})
	must := func(c *tls.Config, err error) *tls.Config {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	both := must(Server(server, ours.Cert))
	for _, c := range []struct {
		what           string
		server, client *tls.Config
		ok             bool
	}{
		{"an agent", both, must(Client(&agent, ours.Cert)), true},
		{"an agent with a signed request", both, must(Client(&KeyPair{signed, key}, ours.Cert)), true},
		{"no client certificate", both, must(Client(nil, ours.Cert)), false},
		{"another authority's agent", both, must(Client(&foreign, ours.Cert)), false},
		{"a server certificate as a client", both, must(Client(&server, ours.Cert)), false},
		{"a client that trusts another authority", both, must(Client(&agent, others.Cert)), false},
		{"a certificate for another address", must(Server(elsewhere, nil)), must(Client(nil, ours.Cert)), false},
		{"an expired certificate", must(Server(over, nil)), must(Client(nil, ours.Cert)), false},
		{"a pin", must(Server(server.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), true},
		{"a pin of another authority", must(Server(server.Chain(ours.Cert), nil)), Pinned("127.0.0.1", others.Hash()), false},
		{"a pin, and no authority sent", must(Server(server, nil)), Pinned("127.0.0.1", ours.Hash()), false},
		{"a pin, and an authority that did not sign the certificate", must(Server(foreign.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), false},
		{"a pin, and another address", must(Server(elsewhere.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), false},
	} {
		if err := call(t, c.server, c.client); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// An authority can be stored and parsed again, and only with its own key.
func TestReadAuthority(t *testing.T) {
	a, b := authority(t), authority(t)
	again, err := ReadAuthority(a.KeyPair)
	if err != nil || again.Hash() != a.Hash() || len(a.Hash()) != 43 {
		t.Errorf("%v, %v", again, err)
	}
	for what, p := range map[string]KeyPair{
		"the key of another authority": {a.Cert, b.Key}, "no key": {Cert: a.Cert}, "nothing": {}, "no authority": issue(t, a, Template{Name: "x", Validity: time.Hour}),
	} {
		if _, err := ReadAuthority(p); err == nil {
			t.Errorf("%s: accepted as an authority", what)
		}
	}
	if _, err := a.Sign([]byte("x"), Template{}); err == nil {
		t.Error("invalid request was signed")
	}
}

// An authority is always valid, because the clock may be wrong when it is created, and one of an earlier version becomes so with the same key.
func TestAuthorityAlwaysValid(t *testing.T) {
	now := authority(t)
	template, err := template(Template{Name: "old", Validity: time.Hour, At: time.Now().Add(-48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	expired, err := sign(template, template, &now.key.PublicKey, now.key, now.key)
	if err != nil {
		t.Fatal(err)
	}
	was, err := Certificate(expired.Cert)
	if err != nil {
		t.Fatal(err)
	}
	old, err := ReadAuthority(expired)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Authority{now, old} {
		if c, err := Certificate(a.Cert); err != nil || !Endless(c) || c.NotBefore.Year() != 1970 || !c.IsCA {
			t.Errorf("%s is valid from %v to %v, %v", c.Subject.CommonName, c.NotBefore, c.NotAfter, err)
		}
	}
	if old.Hash() != Hash(was) {
		t.Error("the authority has another hash")
	}
	client := issue(t, old, Template{Name: "h1", Validity: time.Hour})
	server, err := Server(issue(t, old, Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour}), old.Cert)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Client(&client, old.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, server, c); err != nil {
		t.Error(err)
	}
}

// ServerAnyTime accepts certificates before and after their validity, and none of another authority or for another purpose. A wrong clock has a message of its
// own, also for a pinned server.
func TestAnyTime(t *testing.T) {
	a, other := authority(t), authority(t)
	server, err := ServerAnyTime(issue(t, a, Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour}), a.Cert)
	if err != nil {
		t.Fatal(err)
	}
	late, early := time.Now().Add(-60*24*time.Hour), time.Now().Add(60*24*time.Hour)
	for name, c := range map[string]struct {
		of   *Authority
		l    Template
		want bool
	}{
		"now":               {a, Template{Name: "h1", Validity: time.Hour}, true},
		"expired":           {a, Template{Name: "h1", Validity: time.Hour, At: late}, true},
		"not yet valid":     {a, Template{Name: "h1", Validity: time.Hour, At: early}, true},
		"another authority": {other, Template{Name: "h1", Validity: time.Hour}, false},
		"of a server":       {a, Template{Name: "h1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour}, false},
	} {
		pair := issue(t, c.of, c.l)
		client, err := Client(&pair, a.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if err := call(t, server, client); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	expired, err := Server(issue(t, a, Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour, At: late}).Chain(a.Cert), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, expired, Pinned("127.0.0.1", a.Hash())); err == nil || errors.Is(err, ErrPin) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("a pinned server with an expired certificate: %v", err)
	}
	plain, err := Client(nil, a.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := WithClock(call(t, expired, plain)); err == nil || !strings.Contains(err.Error(), "check the clock") {
		t.Errorf("a server with an expired certificate: %v", err)
	}
}
