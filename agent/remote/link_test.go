package remote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"

	"headgate.dev/headgate/api/agents"
)

// While usage records are read for one query, a desired state is still accepted, and no second
// query is started.
func TestUsageQueryBlocksNothing(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	c.heard = make(chan *agents.FromAgent)
	began, on := make(chan struct{}, 10), make(chan struct{})
	var reading, most atomic.Int32
	a := start(t, dir, func(l *Link) {
		l.Report = func() *agents.Report { return nil }
		l.Handlers = []Handler{OneAtATime(Answer(func(_ context.Context, q *agents.UsageQuery, answer func(*agents.UsageAnswer)) error {
			most.Store(max(most.Load(), reading.Add(1)))
			defer reading.Add(-1)
			began <- struct{}{}
			<-on
			answer(&agents.UsageAnswer{})
			return nil
		}))}
	})
	within(t, "the agent connects", 10*time.Second, c.hello)
	within(t, "facts", 5*time.Second, c.heard)
	for n := range uint64(3) {
		m := agents.To(&agents.UsageQuery{})
		m.Query = n + 1
		c.say <- m
	}
	within(t, "a query starts", 5*time.Second, began)
	c.say <- desired(1, 1, eth0(1, limited("10Mbit")))
	within(t, "the desired state changes during the query", 5*time.Second, a.changed)
	close(on)
	answered := map[uint64]bool{}
	for range 3 {
		m := within(t, "an answer", 5*time.Second, c.heard)
		if m.GetUsage() == nil {
			t.Errorf("received %v, want an answer", m)
		}
		answered[m.Answer] = true
	}
	if !answered[1] || !answered[2] || !answered[3] {
		t.Errorf("the answers have the numbers %v", answered)
	}
	if most.Load() != 1 {
		t.Errorf("%d queries ran at a time, want 1", most.Load())
	}
}

// A query that an agent cannot answer, or of a type that it does not know, is answered with an error.
func TestUnansweredQueries(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	c.heard = make(chan *agents.FromAgent)
	start(t, dir, func(l *Link) {
		l.Report = func() *agents.Report { return nil }
		l.Handlers = []Handler{Answer(func(context.Context, *agents.SetsQuery, func(*agents.SetsAnswer)) error {
			return errors.New("no cgroup")
		})}
	})
	within(t, "the agent connects", 10*time.Second, c.hello)
	within(t, "facts", 5*time.Second, c.heard)
	unknown := &agents.ToAgent{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), nil))
	for n, q := range []struct {
		m   *agents.ToAgent
		err string
	}{
		{agents.To(&agents.SetsQuery{}), "no cgroup"},
		{agents.To(&agents.UsageQuery{}), "agent version test does not support this query: upgrade the agent"},
		{unknown, "agent version test does not support this query: upgrade the agent"},
	} {
		q.m.Query = uint64(n + 1)
		c.say <- q.m
		if m := within(t, "an answer", 5*time.Second, c.heard); m.Answer != q.m.Query || m.Error != q.err {
			t.Errorf("the answer to query %d is %v, want %q", n+1, m, q.err)
		}
	}
}

// A host that joins another installation accepts the state of its controllers, even if epoch and
// revision are lower or equal, whether its agent keeps running or is restarted. Until the first
// state arrives, the previous one stays.
func TestJoinAnotherController(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		first, second, dir := newController(t), newController(t), t.TempDir()
		first.join(t, dir, time.Hour)
		a := start(t, dir, nil)
		within(t, "the agent connects", 10*time.Second, first.hello)
		first.say <- desired(7, 500, eth0(5, limited("10Mbit")))
		within(t, "the desired state changes", 5*time.Second, a.changed)
		second.join(t, dir, time.Hour)
		if restarted {
			a.stop()
			a = start(t, dir, nil)
		} else {
			first.stop()
		}
		h := within(t, "the agent connects to the other controller", 20*time.Second, second.hello)
		if h.Fence.Epoch != 0 || h.Fence.Revision != 0 || len(h.Interfaces) != 0 {
			t.Errorf("restarted %v: hello to the other controller is %v", restarted, h)
		}
		limit := func() string {
			all, _ := a.DesiredState.Interfaces()
			if len(all) != 1 {
				t.Fatalf("restarted %v: interfaces are %+v", restarted, all)
			}
			return all[0].OutTree.Limit.String()
		}
		if limit() != "10Mbit" {
			t.Errorf("restarted %v: limit before the new state is %s", restarted, limit())
		}
		second.say <- desired(1, 6, eth0(5, limited("20Mbit")))
		within(t, "the desired state of the other controller", 5*time.Second, a.changed)
		if limit() != "20Mbit" {
			t.Errorf("restarted %v: limit after the new state is %s", restarted, limit())
		}
		// An older state of the same controller is rejected as before.
		again, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Store(desired(1, 5).GetDesired()); !errors.Is(err, ErrStale) {
			t.Errorf("restarted %v: an older state: %v", restarted, err)
		}
		a.stop()
	}
}

// When the stream of a watch is lost, reports return to the normal interval at once, before another
// controller is connected.
func TestLostStreamEndsWatch(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	every := make(chan time.Duration, 10)
	start(t, dir, func(l *Link) { l.SetReportInterval = func(d time.Duration) { every <- d } })
	within(t, "the agent connects", 10*time.Second, c.hello)
	c.say <- agents.To(&agents.Watch{Closely: true})
	if d := within(t, "short report interval", 5*time.Second, every); d != watchedReportInterval {
		t.Errorf("report interval is %v", d)
	}
	c.stop()
	if d := within(t, "normal report interval", 10*time.Second, every); d != reportInterval {
		t.Errorf("report interval after the stream is %v", d)
	}
}

// full returns a directory on a full tmpfs; free makes space.
func full(t *testing.T, prepare func(dir string)) (dir string, free func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs")
	}
	dir = t.TempDir()
	if err := unix.Mount("headgate-test", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	prepare(dir)
	rest := filepath.Join(dir, "rest")
	f, err := os.Create(rest)
	if err != nil {
		t.Fatal(err)
	}
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if f.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return dir, func() { os.Remove(rest) }
}

// reportsErrors waits for a report in which the errors of eth0 and of the set db contain words, or, for
// "", in which there are none.
func (c *controller) reportsErrors(t *testing.T, words string) {
	t.Helper()
	for end := time.After(10 * time.Second); ; {
		select {
		case m := <-c.heard:
			e := m.GetEnforced()
			if e == nil {
				continue
			}
			dev, set := e.Errors["eth0"], e.SetErrors["db"]
			if words == "" && dev == "" && set == "" || words != "" && strings.Contains(dev, words) && strings.Contains(set, words) {
				return
			}
		case <-end:
			t.Fatalf("no report with the error %q", words)
		}
	}
}

// On a full disk the agent stays connected, keeps the previous state in force and reports the
// error. When there is space again, it accepts the state that it received meanwhile.
func TestFullDisk(t *testing.T) {
	c := newController(t)
	c.heard = make(chan *agents.FromAgent)
	dir, free := full(t, func(dir string) {
		c.join(t, dir, time.Hour)
		intent, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := intent.Store(desired(1, 1, eth0(1, limited("10Mbit"))).GetDesired()); err != nil {
			t.Fatal(err)
		}
	})
	a := start(t, dir, func(l *Link) { l.SetApplied(l.DesiredState.Fence(), map[string]string{}) })
	within(t, "the agent connects", 10*time.Second, c.hello)
	d := desired(1, 2, eth0(2, limited("20Mbit")))
	d.GetDesired().Collectives = []*agents.Document{{Name: "db", Text: "kind: Collective\nname: db\ncgroup: /a\n"}}
	c.say <- d
	c.reportsErrors(t, "no space left on device")
	// The controller does not send the document again.
	d = desired(1, 3, &agents.Interface{Dev: "eth0", Revision: 2})
	d.GetDesired().Collectives = []*agents.Document{{Name: "db", Text: "kind: Collective\nname: db\ncgroup: /b\n"}}
	c.say <- d
	c.say <- &agents.ToAgent{}
	if all, _ := a.DesiredState.Interfaces(); len(all) != 1 || all[0].OutTree.Limit.String() != "10Mbit" || a.DesiredState.Fence().Revision != 1 {
		t.Errorf("interfaces on a full disk are %+v", all)
	}
	free()
	c.say <- &agents.ToAgent{}
	within(t, "the desired state changes", 5*time.Second, a.changed)
	c.reportsErrors(t, "")
	if all, _ := a.DesiredState.Interfaces(); len(all) != 1 || all[0].OutTree.Limit.String() != "20Mbit" || a.DesiredState.Fence().Revision != 3 {
		t.Errorf("interfaces after the write are %+v", all)
	}
	if all, _ := a.DesiredState.Collectives(); len(all) != 1 || all[0].Cgroup != "/b" {
		t.Errorf("sets after the write are %+v", all)
	}
	if len(c.ended) > 0 {
		t.Error("the stream ended")
	}
}

// When a renewed certificate cannot be written, the renewal is retried after a delay, and the
// stream stays open.
func TestFullDiskAtRenewal(t *testing.T) {
	c := newController(t)
	c.heard = make(chan *agents.FromAgent)
	dir, free := full(t, func(dir string) {
		c.join(t, dir, 5*time.Second) // due for renewal, because its validity began 5 minutes ago
		intent, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := intent.Store(desired(1, 1, eth0(1, limited("10Mbit"))).GetDesired()); err != nil {
			t.Fatal(err)
		}
	})
	defer free()
	start(t, dir, func(l *Link) { l.SetApplied(l.DesiredState.Fence(), map[string]string{}) })
	within(t, "the agent connects", 10*time.Second, c.hello)
	for end := time.After(10 * time.Second); ; {
		select {
		case m := <-c.heard:
			if got := m.GetEnforced().GetErrors()["eth0"]; !strings.Contains(got, "the renewed certificate") {
				continue
			}
		case <-end:
			t.Fatal("no report with the error")
		}
		break
	}
	select {
	case <-c.ended:
		t.Error("the stream ended")
	case <-c.hello:
		t.Error("the agent reconnected")
	case <-time.After(2 * time.Second):
	}
	if got := c.renewed.Load(); got != 1 {
		t.Errorf("%d renewals, want 1", got)
	}
}
