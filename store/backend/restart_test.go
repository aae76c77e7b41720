package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// candidateEnv makes the test binary run as a controller that does nothing but lead. Its value is a candidateSpec.
const candidateEnv = "HEADGATE_TEST_CANDIDATE"

type candidateSpec struct {
	Dir, Name   string
	Controllers config.Controllers
	Command     []string // of the store
}

// candidateMain writes "leads GENERATION" when a term begins, and "ends" when it ends. It does not return.
func candidateMain(text string) {
	err := func() error {
		var spec candidateSpec
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			return err
		}
		d, err := LockDirectory(spec.Dir)
		if err != nil {
			return err
		}
		s, _, err := Run(context.Background(), Member(spec.Dir, spec.Name, spec.Controllers), spec.Command)
		if err != nil {
			return err
		}
		return s.Lead(context.Background(), store.Candidate{Name: spec.Name, Leases: d}, func(ctx context.Context, t store.Term) error {
			generation, err := t.Generation(ctx)
			if err != nil {
				return err
			}
			fmt.Println("leads", generation)
			<-ctx.Done()
			fmt.Println("ends")
			return nil
		})
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// candidate is such a process.
type candidate struct {
	*exec.Cmd
	name string
	said chan string // the lines that it writes, until it has ended
}

func (spec candidateSpec) start(t *testing.T) *candidate {
	t.Helper()
	spec.Command = storetest.Command(t)
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{exec.Command(os.Args[0]), spec.Name, make(chan string, 100)}
	c.Env = append(os.Environ(), candidateEnv+"="+string(text))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.said <- lines.Text()
		}
	}()
	t.Cleanup(c.kill)
	return c
}

// kill ends the process as kill -9 does, and waits until it has ended.
func (c *candidate) kill() {
	if c.ProcessState == nil {
		c.Process.Signal(syscall.SIGKILL)
		c.Wait()
	}
}

// election observes the leader election of a test by a client of its own.
type election struct {
	*testing.T
	*clientv3.Client
}

// observe connects to the store of a directory once it runs.
func observe(t *testing.T, spec candidateSpec) *election {
	t.Helper()
	m := Member(spec.Dir, spec.Name, spec.Controllers)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		tls, err := m.TLS()
		if err == nil {
			c, err := clientv3.New(clientv3.Config{Endpoints: m.URLs(), TLS: tls})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return &election{t, c}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// candidates returns the names and leases of the candidates, the leader first.
func (e *election) candidates() (names []string, leases map[string]clientv3.LeaseID) {
	leases = map[string]clientv3.LeaseID{}
	ctx, cancel := context.WithTimeout(e.Context(), 5*time.Second)
	defer cancel()
	got, err := e.Get(ctx, store.Key(store.Service, "leader")+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, leases // the store is starting
	}
	for _, kv := range got.Kvs {
		names = append(names, string(kv.Value))
		leases[string(kv.Value)] = clientv3.LeaseID(kv.Lease)
	}
	return names, leases
}

func (e *election) until(what string, ok func() bool) {
	e.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			names, _ := e.candidates()
			e.Fatalf("not within a minute: %s; the candidates are %v", what, names)
		}
	}
}

// renew renews a lease again and again, so that it never expires. The channel is closed when it was revoked.
func (e *election) renew(lease clientv3.LeaseID) (revoked chan struct{}) {
	revoked = make(chan struct{})
	go func() {
		for e.Context().Err() == nil {
			ctx, cancel := context.WithTimeout(e.Context(), time.Second)
			_, err := e.KeepAliveOnce(ctx, lease)
			cancel()
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				close(revoked)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return revoked
}

// leads waits until the process leads, and returns the generation of its term.
func (e *election) leads(c *candidate) (generation uint64) {
	e.Helper()
	select {
	case line := <-c.said:
		if _, err := fmt.Sscanf(line, "leads %d", &generation); err != nil {
			e.Fatalf("%s writes %q", c.name, line)
		}
	case <-time.After(time.Minute):
		e.Fatalf("%s does not lead within a minute", c.name)
	}
	return generation
}

// TestRestartAfterKill checks that the only controller, killed as the leader and started again, leads without waiting until the
// lease of the process before has expired: the test renews that lease for ever. It also checks that a process which is suspended
// keeps its lease, though another one is started in its directory.
func TestRestartAfterKill(t *testing.T) {
	t.Parallel()
	spec := candidateSpec{Dir: t.TempDir(), Name: "c1", Controllers: controllers(t, config.Member{Name: "c1", Address: "127.0.0.1"})}
	first := spec.start(t)
	e := observe(t, spec)
	before := e.leads(first)
	_, leases := e.candidates()
	revoked := e.renew(leases["c1"])

	first.Process.Signal(syscall.SIGSTOP)
	second := spec.start(t)
	if line, ok := <-second.said; ok {
		t.Errorf("a second process beside a suspended one writes %q", line)
	}
	if err := second.Wait(); err == nil {
		t.Error("a second process beside a suspended one does not fail")
	}
	select {
	case <-revoked:
		t.Error("the lease of a suspended process was revoked")
	default:
	}

	first.kill()
	again := spec.start(t)
	if after := e.leads(again); after <= before {
		t.Errorf("the generation is %d after %d", after, before)
	}
	<-revoked
}

// TestRestartOfThree checks that a controller which was killed and started again revokes its own lease alone. All leases of
// killed processes are renewed by the test for ever.
func TestRestartOfThree(t *testing.T) {
	t.Parallel()
	three := controllers(t)
	for n := 1; n <= 3; n++ {
		three.Members = append(three.Members, config.Member{Name: fmt.Sprintf("c%d", n), Address: fmt.Sprintf("127.0.0.%d", n)})
	}
	specs, running := map[string]candidateSpec{}, map[string]*candidate{}
	for _, m := range three.Members {
		specs[m.Name] = candidateSpec{Dir: t.TempDir(), Name: m.Name, Controllers: three}
	}
	if err := Member(specs["c1"].Dir, "c1", three).Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, spec := range specs {
		if name != "c1" {
			if err := Member(specs["c1"].Dir, "c1", three).Copy(memberDir(spec.Dir)); err != nil {
				t.Fatal(err)
			}
		}
		running[name] = spec.start(t)
	}
	e := observe(t, specs["c1"])
	var names []string
	var leases map[string]clientv3.LeaseID
	e.until("there are three candidates", func() bool { names, leases = e.candidates(); return len(names) == 3 })
	leader, next, last := names[0], names[1], names[2]
	before := e.leads(running[leader])

	// A candidate that waits is killed. Started again, it waits again, behind the others.
	revoked := e.renew(leases[next])
	running[next].kill()
	running[next] = specs[next].start(t)
	<-revoked
	want := strings.Join([]string{leader, last, next}, " ")
	var now map[string]clientv3.LeaseID
	e.until("the candidates are "+want, func() bool { names, now = e.candidates(); return strings.Join(names, " ") == want })
	if now[leader] != leases[leader] || now[last] != leases[last] {
		t.Errorf("the leases were %v, and are %v", leases, now)
	}
	select {
	case line, ok := <-running[leader].said:
		t.Errorf("the leader writes %q (%v) when another was killed", line, ok)
	case line := <-running[last].said:
		t.Errorf("a candidate that waits writes %q", line)
	default:
	}

	// The leader is killed. Nobody leads before it is started again, and then the one that has waited the longest does.
	revoked = e.renew(leases[leader])
	running[leader].kill()
	running[leader] = specs[leader].start(t)
	<-revoked
	if after := e.leads(running[last]); after <= before {
		t.Errorf("the generation is %d after %d", after, before)
	}
	e.until("the candidates are in order", func() bool {
		names, now = e.candidates()
		return strings.Join(names, " ") == strings.Join([]string{last, next, leader}, " ")
	})
	if now[last] != leases[last] {
		t.Error("the lease of the new leader was revoked")
	}
}
