package host

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/internal/pki"
)

// meet connects two agents over loopback. The server sends a word, which the client reads.
func meet(t *testing.T, client, server *Auth) (clientErr, serverErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		defer b.Close()
		over, err := server.Server(b)
		if err == nil {
			_, err = over.Write([]byte("hello"))
		}
		served <- err
	}()
	over, err := client.Client(a)
	if err == nil {
		got := make([]byte, 5)
		if _, err = io.ReadFull(over, got); err == nil && string(got) != "hello" {
			t.Errorf("read %q", got)
		}
	} else {
		a.Close()
	}
	return err, <-served
}

// Agents with the same key have a connection, encrypted or not, and others none.
func TestSharedKey(t *testing.T) {
	for _, c := range []struct {
		client, server string
		encrypt        bool
	}{{"a", "a", true}, {"a", "a", false}, {"a", "b", true}, {"a", "b", false}} {
		client, server := meet(t, newKey(t, c.client, c.encrypt), newKey(t, c.server, c.encrypt))
		if same := c.client == c.server; same != (client == nil) || same != (server == nil) || !same && !errors.Is(server, peerauth.ErrKey) {
			t.Errorf("%+v: client %v, server %v", c, client, server)
		}
	}
	if _, err := NewAuth(peerauth.Credentials{}, true); err == nil {
		t.Error("streams without encryption and key are accepted")
	}
}

// Agents with certificates of one authority have a connection, whatever their certificates are for, and others none.
func TestCertificates(t *testing.T) {
	authority := func() *pki.Authority {
		a, err := pki.NewAuthority("relays")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	agent := func(signs, knows *pki.Authority) *Auth {
		pair, err := signs.Issue(pki.Template{Name: "host", Validity: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		own, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(knows.Cert)
		a, err := NewAuth(peerauth.Credentials{Certificate: &own, Authority: pool}, false)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ours, other := authority(), authority()
	if client, server := meet(t, agent(ours, ours), agent(ours, ours)); client != nil || server != nil {
		t.Errorf("the same authority: client %v, server %v", client, server)
	}
	if _, server := meet(t, agent(other, ours), agent(ours, ours)); server == nil {
		t.Error("a client of another authority is accepted")
	}
	if client, _ := meet(t, agent(ours, ours), agent(other, ours)); client == nil {
		t.Error("a server of another authority is accepted")
	}
	if _, server := meet(t, newKey(t, "k", true), agent(ours, ours)); server == nil {
		t.Error("a client without a certificate is accepted")
	}
}
