package remote

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"headgate/api/agents"
	"headgate/internal/pki"
)

// controller is one that says what a test has it say, of a service of its own.
type controller struct {
	agents.UnimplementedAgentsServer
	authority *pki.Authority
	at        string
	say       chan *agents.ToAgent
	hello     chan *agents.Hello
	heard     chan *agents.FromAgent // if it is not nil
	ended     chan struct{}
	renewed   atomic.Int32
	stop      func()
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
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if c.heard != nil {
				select {
				case c.heard <- m:
				case <-stream.Context().Done():
				}
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

func (c *controller) Renew(_ context.Context, r *agents.RenewRequest) (*agents.RenewResponse, error) {
	c.renewed.Add(1)
	cert, err := c.authority.Sign(r.Request, pki.Leaf{Name: "h1", Life: time.Hour})
	return &agents.RenewResponse{Certificate: cert, Authority: c.authority.Cert}, err
}

// newController serves until the test ends.
func newController(t *testing.T) *controller {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Leaf{Name: "c1", Hosts: []string{"127.0.0.1"}, Life: time.Hour})
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
	c := &controller{authority: authority, at: l.Addr().String(), say: make(chan *agents.ToAgent), hello: make(chan *agents.Hello, 10), ended: make(chan struct{}, 10)}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
	agents.RegisterAgentsServer(server, c)
	go server.Serve(l)
	c.stop = server.Stop
	t.Cleanup(server.Stop)
	return c
}

// join keeps in a folder who h1 is for the controller's service, with a certificate for some time.
func (c *controller) join(t *testing.T, dir string, life time.Duration) {
	t.Helper()
	pair, err := c.authority.Issue(pki.Leaf{Name: "h1", Life: life})
	if err != nil {
		t.Fatal(err)
	}
	if err := (Identity{Host: "h1", Pair: pair, Authority: c.authority.Cert, Agents: []string{c.at}}).save(dir); err != nil {
		t.Fatal(err)
	}
}

// agent is one whose host has joined; changed has each time that something new is wanted.
type agent struct {
	*Link
	changed chan struct{}
	stop    func()
}

// start is of an agent with a folder, until the test ends.
func start(t *testing.T, dir string, prepare func(*Link)) *agent {
	t.Helper()
	intent, err := OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{Link: NewLink(dir, "test", intent), changed: make(chan struct{}, 10)}
	a.Changed = func() { a.changed <- struct{}{} }
	a.Facts = func() *agents.Facts { return &agents.Facts{} }
	a.Report = func() *agents.Report { return &agents.Report{} }
	if prepare != nil {
		prepare(a.Link)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	a.stop = func() { cancel(); <-done; a.stop = func() {} }
	t.Cleanup(func() { a.stop() })
	return a
}

// within waits for something.
func within[T any](t *testing.T, what string, d time.Duration, of <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-of:
	case <-time.After(d):
		t.Fatalf("not within %v: %s", d, what)
	}
	return v
}

// desired is what a controller says.
func desired(epoch uint64, revision int64, interfaces ...*agents.Interface) *agents.ToAgent {
	return &agents.ToAgent{Message: &agents.ToAgent_Desired{Desired: &agents.Desired{Fence: &agents.Fence{Epoch: epoch, Revision: revision}, Interfaces: interfaces}}}
}
