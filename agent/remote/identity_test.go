package remote

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
)

// renewing is a controller that only renews certificates.
type renewing struct {
	controller
	authority *pki.Authority
	at        []string
}

func (r *renewing) Renew(_ context.Context, q *agents.RenewRequest) (*agents.RenewResponse, error) {
	cert, err := r.authority.Sign(q.Request, pki.Template{Name: "h1", Validity: time.Hour})
	return &agents.RenewResponse{Certificate: cert, Authority: r.authority.Cert, Agents: r.at}, err
}

// The controllers' addresses are sent when the certificate is renewed, and are stored. Addresses
// that a stream of an earlier identity received are not stored after the host has joined again.
func TestRenewed(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	old, err := authority.Issue(pki.Template{Name: "h1", Validity: time.Minute}) // expired: its validity began 5 minutes ago
	if err != nil {
		t.Fatal(err)
	}
	tls, err := pki.Server(own, authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &renewing{controller{say: make(chan *agents.ToAgent), hello: make(chan *agents.Hello, 100), ended: make(chan struct{}, 100)}, authority, []string{l.Addr().String(), "127.0.0.1:1"}}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
	agents.RegisterAgentsServer(server, c)
	go server.Serve(l)
	defer server.Stop()

	dir := t.TempDir()
	first := Identity{Host: "h1", KeyPair: old, Authority: authority.Cert, Agents: c.at[:1]}
	if err := first.save(dir); err != nil {
		t.Fatal(err)
	}
	intent, err := OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	link := NewLink(dir, "test", intent)
	link.Changed = func() {}
	link.Facts = func() *agents.Facts { return &agents.Facts{} }
	link.Report = func() *agents.Report { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- link.Run(ctx) }()
	defer func() { cancel(); <-done }()
	var now Identity
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if now, err = ReadIdentity(dir); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(now.Cert, old.Cert) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the certificate is not renewed")
		}
	}
	if !slices.Equal(now.Agents, c.at) {
		t.Errorf("stored addresses are %v, want %v", now.Agents, c.at)
	}
	if err := first.updateControllers(dir, []string{"127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if now, err = ReadIdentity(dir); err != nil || !slices.Equal(now.Agents, c.at) {
		t.Errorf("after an update of the old identity: %v, %v", now.Agents, err)
	}
	if err := now.updateControllers(dir, []string{"127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if now, err = ReadIdentity(dir); err != nil || fmt.Sprint(now.Agents) != "[127.0.0.1:2]" {
		t.Errorf("after an update of the new identity: %v, %v", now.Agents, err)
	}
}

// An agent prefers the address by which it joined to those that controllers announce, and keeps both.
func TestNextController(t *testing.T) {
	for _, c := range []struct {
		joined string
		agents []string
		failed string
		want   string
	}{
		{"192.0.2.1", []string{"10.0.0.1:8421"}, "", "192.0.2.1:8421"},
		{"192.0.2.1", []string{"10.0.0.1:8421"}, "192.0.2.1:8421", "10.0.0.1:8421"},
		{"192.0.2.1", []string{"10.0.0.1:8421"}, "10.0.0.1:8421", "192.0.2.1:8421"},
		{"gw.example.org:18421", []string{"10.0.0.1:8421"}, "", "gw.example.org:18421"},
		{"2001:db8::1", []string{"10.0.0.1:8421"}, "", "[2001:db8::1]:8421"},
		{"10.0.0.1", []string{"10.0.0.1:8421", "10.0.0.2:8421"}, "10.0.0.1:8421", "10.0.0.2:8421"},
		{"", []string{"10.0.0.1:8421"}, "", "10.0.0.1:8421"},
	} {
		if got := (Identity{Joined: c.joined, Agents: c.agents}).nextController(c.failed); got != c.want {
			t.Errorf("joined by %q, announced %v, failed %q: %s, want %s", c.joined, c.agents, c.failed, got, c.want)
		}
	}
}
