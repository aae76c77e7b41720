package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

// call is what becomes of a connection from a client to a server, both ways.
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
		_, err = c.Read(make([]byte, 1)) // a refusal of the client's certificate comes here
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

func issue(t *testing.T, a *Authority, l Leaf) Pair {
	t.Helper()
	p, err := a.Issue(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Who may speak to whom.
func TestTLS(t *testing.T) {
	ours, others := authority(t), authority(t)
	local := []string{"127.0.0.1", "localhost"}
	server := issue(t, ours, Leaf{Name: "controller", Hosts: local, Life: time.Hour})
	elsewhere := issue(t, ours, Leaf{Name: "controller", Hosts: []string{"192.0.2.1"}, Life: time.Hour})
	over := issue(t, ours, Leaf{Name: "controller", Hosts: local, Life: -time.Minute})
	agent := issue(t, ours, Leaf{Name: "h1", Life: time.Hour})
	request, key, err := Request("somebody else's name")
	if err != nil {
		t.Fatal(err)
	}
	signed, err := ours.Sign(request, Leaf{Name: "h2", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Certificate(signed); err != nil || c.Subject.CommonName != "h2" {
		t.Errorf("the name in the request is believed: %v, %v", c.Subject, err)
	}
	foreign := issue(t, others, Leaf{Name: "h1", Life: time.Hour})
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
		{"one whose request was signed", both, must(Client(&Pair{signed, key}, ours.Cert)), true},
		{"nobody", both, must(Client(nil, ours.Cert)), false},
		{"another authority's agent", both, must(Client(&foreign, ours.Cert)), false},
		{"an agent of a server as a client", both, must(Client(&server, ours.Cert)), false},
		{"one who trusts another authority", both, must(Client(&agent, others.Cert)), false},
		{"a certificate for another address", must(Server(elsewhere, nil)), must(Client(nil, ours.Cert)), false},
		{"a certificate that is over", must(Server(over, nil)), must(Client(nil, ours.Cert)), false},
		{"a pin", must(Server(server.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), true},
		{"a pin of another", must(Server(server.Chain(ours.Cert), nil)), Pinned("127.0.0.1", others.Hash()), false},
		{"a pin, and no authority sent", must(Server(server, nil)), Pinned("127.0.0.1", ours.Hash()), false},
		{"a pin, and an authority that signed nothing", must(Server(foreign.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), false},
		{"a pin, and another address", must(Server(elsewhere.Chain(ours.Cert), nil)), Pinned("127.0.0.1", ours.Hash()), false},
	} {
		if err := call(t, c.server, c.client); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// An authority survives being written down, and only with its own key.
func TestReadAuthority(t *testing.T) {
	a, b := authority(t), authority(t)
	again, err := ReadAuthority(a.Pair)
	if err != nil || again.Hash() != a.Hash() || len(a.Hash()) != 43 {
		t.Errorf("%v, %v", again, err)
	}
	for what, p := range map[string]Pair{
		"another's key": {a.Cert, b.Key}, "no key": {Cert: a.Cert}, "nothing": {}, "no authority": issue(t, a, Leaf{Name: "x", Life: time.Hour}),
	} {
		if _, err := ReadAuthority(p); err == nil {
			t.Errorf("%s makes an authority", what)
		}
	}
	if _, err := a.Sign([]byte("x"), Leaf{}); err == nil {
		t.Error("what is no request is signed")
	}
}
