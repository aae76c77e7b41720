package controller_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
)

// unknown is a protobuf field that this version does not know.
func unknown() []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
}

// stream joins host h1, and opens the stream of its agent.
func (s *service) stream() agents.Agents_ConnectClient {
	s.t.Helper()
	dir := s.t.TempDir()
	token := s.token(`{"name": "join", "role": "agent", "host": "h1"}`)
	if err := remote.Join(s.t.Context(), dir, remote.Controller{URL: s.url, Host: "h1", Token: token, Pin: s.pin}); err != nil {
		s.t.Fatal(err)
	}
	id, err := remote.ReadIdentity(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	tls, err := pki.Client(&id.KeyPair, id.Authority)
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.agents, grpc.WithTransportCredentials(credentials.NewTLS(tls)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	stream, err := agents.NewAgentsClient(conn).Connect(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

// An agent of the version before repeats the identifier in a query, and not the number of the message.
func TestAnswersWithoutNumbers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	stream := s.stream()
	if err := stream.Send(agents.From(&agents.Hello{Version: "former", Sets: true})); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if q := m.GetUsage(); q != nil {
				stream.Send(agents.From(&agents.UsageAnswer{Id: q.Id, Rows: []*agents.Usage{{Dev: "eth0", Group: "out/a", DeliveredBytes: 7}}}))
			}
			if q := m.GetSets(); q != nil {
				stream.Send(agents.From(&agents.SetsAnswer{Id: q.Id, States: []byte("[]")}))
			}
			if q := m.GetProbe(); q != nil {
				for _, state := range []string{"running", "done"} {
					stream.Send(agents.From(&agents.ProbeAnswer{Id: q.Id, State: state}))
				}
			}
		}
	}()
	for range 100 {
		if r := s.must(200, "GET", "/v1/hosts/h1", ""); strings.Contains(r.text, `"connected":true`) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if r := s.must(200, "GET", "/v1/usage?since=2026-01-01T00:00:00Z", ""); !strings.Contains(r.text, `"delivered_bytes":7`) {
		t.Errorf("usage is %s", r.text)
	}
	if r := s.must(200, "GET", "/v1/hosts/h1/collective-states", ""); !strings.Contains(r.text, `"items":[]`) || strings.Contains(r.text, "error") {
		t.Errorf("the connection sets are %s", r.text)
	}
	var probe struct{ ID, State string }
	s.must(202, "POST", "/v1/hosts/h1/probes", `{"measure": "capacity", "peer": "10.0.0.2"}`).into(t, &probe)
	for range 100 {
		s.must(200, "GET", "/v1/hosts/h1/probes/"+probe.ID, "").into(t, &probe)
		if probe.State == "done" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the measurement is %+v", probe)
}

// The controller serves an agent of another version, which sends unknown fields and messages and none
// of the optional known ones. The agent receives the desired state of its host. Requests that the
// agent does not support fail at once.
func TestAgentOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	s.must(200, "PUT", "/v1/hosts/h1/collectives/db", `{"document": "kind: Collective\nname: db\njoin: root\n"}`)
	stream := s.stream()
	hello := &agents.Hello{Version: "another"}
	hello.ProtoReflect().SetUnknown(unknown())
	strange := &agents.FromAgent{}
	strange.ProtoReflect().SetUnknown(unknown())
	enforced := &agents.Enforced{Fence: &agents.Fence{Epoch: 1, Revision: 1}, Errors: map[string]string{"eth0": "an error"}}
	enforced.ProtoReflect().SetUnknown(unknown())
	for _, m := range []*agents.FromAgent{agents.From(hello), strange, agents.From(enforced)} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	d := m.GetDesired()
	if len(d.GetInterfaces()) != 1 || len(d.Interfaces[0].Document) == 0 || len(d.Collectives) != 1 {
		t.Errorf("the first message is %v", m)
	}
	began := time.Now()
	if r := s.must(200, "GET", "/v1/hosts/h1/collective-states", ""); !strings.Contains(r.text, "agent version another does not support connection sets: upgrade the agent") {
		t.Errorf("the connection sets are %s", r.text)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the answer took %v", took)
	}
	for range 100 {
		if r := s.must(200, "GET", "/v1/hosts/h1", ""); strings.Contains(r.text, `"version":"another"`) && strings.Contains(r.text, `"applied":"1/1"`) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if r := s.must(200, "GET", "/v1/hosts/h1", ""); !strings.Contains(r.text, `"connected":true`) || !strings.Contains(r.text, `"applied":"1/1"`) {
		t.Errorf("the host is %s", r.text)
	}
	s.must(200, "GET", "/v1/hosts/h1/rates", "")
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
	for {
		if m, err = stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if d := m.GetDesired(); d != nil {
			if len(d.Interfaces) != 0 {
				t.Errorf("after the deletion the desired state is %v", d)
			}
			return
		}
	}
}
