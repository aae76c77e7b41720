package controller_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"

	"headgate/agent/remote"
	"headgate/api/agents"
	"headgate/internal/pki"
)

// unknown is a protobuf field that this version does not know.
func unknown() []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
}

// The controller serves an agent of another version, which sends unknown fields and messages and none
// of the optional known ones. The agent receives the desired state of its host. Requests that the
// agent does not support fail at once.
func TestAgentOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	s.must(200, "PUT", "/v1/hosts/h1/collectives/db", `{"document": "kind: Collective\nname: db\njoin: root\n"}`)
	dir := t.TempDir()
	token := s.token(`{"name": "join", "role": "agent", "host": "h1"}`)
	if err := remote.Join(t.Context(), dir, remote.Controller{URL: s.url, Host: "h1", Token: token, Pin: s.pin}); err != nil {
		t.Fatal(err)
	}
	id, err := remote.ReadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	tls, err := pki.Client(&id.KeyPair, id.Authority)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.agents, grpc.WithTransportCredentials(credentials.NewTLS(tls)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := agents.NewAgentsClient(conn).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hello := &agents.Hello{Version: "another"}
	hello.ProtoReflect().SetUnknown(unknown())
	strange := &agents.FromAgent{}
	strange.ProtoReflect().SetUnknown(unknown())
	enforced := &agents.Enforced{Fence: &agents.Fence{Epoch: 1, Revision: 1}, Troubles: map[string]string{"eth0": "an error"}}
	enforced.ProtoReflect().SetUnknown(unknown())
	for _, m := range []*agents.FromAgent{{Message: &agents.FromAgent_Hello{Hello: hello}}, strange, {Message: &agents.FromAgent_Enforced{Enforced: enforced}}} {
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
