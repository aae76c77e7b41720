package remote

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"

	"headgate/api/agents"
	"headgate/internal/pki"
)

// controller is one that says what a test has it say.
type controller struct {
	agents.UnimplementedAgentsServer
	say   chan *agents.ToAgent
	hello chan *agents.Hello
	ended chan struct{}
}

func (c *controller) Connect(stream agents.Agents_ConnectServer) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	c.hello <- m.GetHello()
	defer func() { c.ended <- struct{}{} }()
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	for {
		select {
		case m := <-c.say:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// A controller of another version is obeyed as far as it is understood: one that says fields and
// messages which this one does not know, and never that it is there. One that has said so once is
// left when it says so no more.
func TestControllerOfAnotherVersion(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Leaf{Name: "c1", Hosts: []string{"127.0.0.1"}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := authority.Issue(pki.Leaf{Name: "h1", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	tls, err := pki.Server(own, authority.Cert, true)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{say: make(chan *agents.ToAgent), hello: make(chan *agents.Hello, 10), ended: make(chan struct{}, 10)}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
	agents.RegisterAgentsServer(server, c)
	go server.Serve(l)
	defer server.Stop()

	dir := t.TempDir()
	if err := (Identity{Host: "h1", Pair: agent, Authority: authority.Cert, Agents: []string{l.Addr().String()}}).save(dir); err != nil {
		t.Fatal(err)
	}
	intent, err := OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	link := NewLink(dir, "test", intent)
	changed := make(chan struct{}, 10)
	link.Changed = func() { changed <- struct{}{} }
	link.Facts = func() *agents.Facts { return &agents.Facts{} }
	link.Report = func() *agents.Report { return &agents.Report{} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- link.Run(ctx) }()
	defer func() { cancel(); <-done }()

	within := func(what string, d time.Duration, of <-chan struct{}) {
		t.Helper()
		select {
		case <-of:
		case <-time.After(d):
			t.Fatalf("not within %v: %s", d, what)
		}
	}
	select {
	case <-c.hello:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not come")
	}
	strange := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
	d := &agents.Desired{Fence: &agents.Fence{Epoch: 1, Revision: 5}, Interfaces: []*agents.Interface{{Dev: "eth0", Revision: 5,
		Document: []byte(`{"dev": "eth0", "none": 1, "out": {"limit": "10Mbit", "groups": [{"name": "rest", "default": true}]}}`)}}}
	d.ProtoReflect().SetUnknown(strange)
	c.say <- &agents.ToAgent{Message: &agents.ToAgent_Desired{Desired: d}}
	within("it obeys", 5*time.Second, changed)
	if all, troubles := intent.Interfaces(); len(all) != 1 || len(troubles) > 0 {
		t.Errorf("it has %+v, %v", all, troubles)
	}
	select {
	case <-c.ended:
		t.Error("it leaves a controller that does not say that it is there")
	case <-time.After(silence + time.Second):
	}
	m := &agents.ToAgent{}
	m.ProtoReflect().SetUnknown(strange)
	c.say <- m
	within("it leaves one that has fallen silent", silence+3*time.Second, c.ended)
	select {
	case h := <-c.hello:
		if h.Fence.Revision != 5 || h.Interfaces["eth0"] != 5 {
			t.Errorf("it comes again with %v", h)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it does not come again")
	}
}
