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

	"headgate/api/agents"
	"headgate/internal/pki"
)

// renewing is a controller that does nothing but renew.
type renewing struct {
	controller
	authority *pki.Authority
	at        []string
}

func (r *renewing) Renew(_ context.Context, q *agents.RenewRequest) (*agents.RenewResponse, error) {
	cert, err := r.authority.Sign(q.Request, pki.Leaf{Name: "h1", Life: time.Hour})
	return &agents.RenewResponse{Certificate: cert, Authority: r.authority.Cert, Agents: r.at}, err
}

// Where controllers are is told when the certificate is renewed, and kept; what was told of another
// identity is no matter of one that has joined anew.
func TestRenewed(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Leaf{Name: "c1", Hosts: []string{"127.0.0.1"}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	old, err := authority.Issue(pki.Leaf{Name: "h1", Life: time.Minute}) // it began 5 minutes ago
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
	first := Identity{Host: "h1", Pair: old, Authority: authority.Cert, Agents: c.at[:1]}
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
			t.Fatal("it is not renewed")
		}
	}
	if !slices.Equal(now.Agents, c.at) {
		t.Errorf("it knows of %v, want %v", now.Agents, c.at)
	}
	if err := first.found(dir, []string{"127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if now, err = ReadIdentity(dir); err != nil || !slices.Equal(now.Agents, c.at) {
		t.Errorf("then of %v, %v", now.Agents, err)
	}
	if err := now.found(dir, []string{"127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if now, err = ReadIdentity(dir); err != nil || fmt.Sprint(now.Agents) != "[127.0.0.1:2]" {
		t.Errorf("at last of %v, %v", now.Agents, err)
	}
}
