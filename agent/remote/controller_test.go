package remote

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
)

// controller is a fake controller with a certificate authority of its own. It sends what a test
// puts in say.
type controller struct {
	agents.UnimplementedAgentsServer
	authority *pki.Authority
	at        string
	say       chan *agents.ToAgent
	hello     chan *agents.Hello
	heard     chan *agents.FromAgent // received messages; nil discards them
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
	cert, err := c.authority.Sign(r.Request, pki.Template{Name: "h1", Validity: time.Hour})
	return &agents.RenewResponse{Certificate: cert, Authority: c.authority.Cert}, err
}

// newController starts a controller that runs until the test ends.
func newController(t *testing.T) *controller {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.Issue(pki.Template{Name: "c1", Hosts: []string{"127.0.0.1"}, Validity: time.Hour})
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

// join stores an identity of host h1 in a directory, with a certificate that is valid for life.
func (c *controller) join(t *testing.T, dir string, life time.Duration) {
	t.Helper()
	pair, err := c.authority.Issue(pki.Template{Name: "h1", Validity: life})
	if err != nil {
		t.Fatal(err)
	}
	if err := (Identity{Host: "h1", KeyPair: pair, Authority: c.authority.Cert, Agents: []string{c.at}}).save(dir); err != nil {
		t.Fatal(err)
	}
}

// agent is a running Link; changed receives a value for each change of the desired state.
type agent struct {
	*Link
	changed chan struct{}
	stop    func()
}

// start runs an agent with an identity directory until the test ends.
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

// within waits for a value.
func within[T any](t *testing.T, what string, d time.Duration, of <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-of:
	case <-time.After(d):
		t.Fatalf("not within %v: %s", d, what)
	}
	return v
}

// desired returns a controller's message with a desired state.
func desired(epoch uint64, revision int64, interfaces ...*agents.Interface) *agents.ToAgent {
	return agents.To(&agents.Desired{Fence: &agents.Fence{Epoch: epoch, Revision: revision}, Interfaces: interfaces})
}
