package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/api/agents"
)

// While the record is read for one question, what is wanted is obeyed, and no second one is read for.
func TestUsageHoldsNothingUp(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	c.heard = make(chan *agents.FromAgent)
	began, on := make(chan struct{}, 10), make(chan struct{})
	var reading, most atomic.Int32
	a := start(t, dir, func(l *Link) {
		l.Report = func() *agents.Report { return nil }
		l.Usage = func(q *agents.UsageQuestion) *agents.UsageAnswer {
			most.Store(max(most.Load(), reading.Add(1)))
			defer reading.Add(-1)
			began <- struct{}{}
			<-on
			return &agents.UsageAnswer{Id: q.Id}
		}
	})
	within(t, "it comes", 10*time.Second, c.hello)
	within(t, "its facts", 5*time.Second, c.heard)
	for id := range uint64(3) {
		c.say <- &agents.ToAgent{Message: &agents.ToAgent_Usage{Usage: &agents.UsageQuestion{Id: id}}}
	}
	within(t, "it reads the record", 5*time.Second, began)
	c.say <- desired(1, 1, eth0(1, limited("10Mbit")))
	within(t, "it obeys meanwhile", 5*time.Second, a.changed)
	close(on)
	for range 3 {
		if m := within(t, "it answers", 5*time.Second, c.heard); m.GetUsage() == nil {
			t.Errorf("it says %v", m)
		}
	}
	if most.Load() != 1 {
		t.Errorf("the record is read for %d questions at a time", most.Load())
	}
}

// A host that joins another service obeys that one, whose numbers are lower or by chance the same,
// whether its agent runs meanwhile or is started again; until then it has what it had.
func TestAnotherService(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		first, second, dir := newController(t), newController(t), t.TempDir()
		first.join(t, dir, time.Hour)
		a := start(t, dir, nil)
		within(t, "it comes", 10*time.Second, first.hello)
		first.say <- desired(7, 500, eth0(5, limited("10Mbit")))
		within(t, "it obeys", 5*time.Second, a.changed)
		second.join(t, dir, time.Hour)
		if restarted {
			a.stop()
			a = start(t, dir, nil)
		} else {
			first.stop()
		}
		h := within(t, "it comes to the other service", 20*time.Second, second.hello)
		if h.Fence.Epoch != 0 || h.Fence.Revision != 0 || len(h.Interfaces) != 0 {
			t.Errorf("restarted %v: it has %v of the other service", restarted, h)
		}
		limit := func() string {
			all, _ := a.Intent.Interfaces()
			if len(all) != 1 {
				t.Fatalf("restarted %v: it has %+v", restarted, all)
			}
			return all[0].OutTree.Limit.String()
		}
		if limit() != "10Mbit" {
			t.Errorf("restarted %v: at first it has %s", restarted, limit())
		}
		second.say <- desired(1, 6, eth0(5, limited("20Mbit")))
		within(t, "it obeys the other service", 5*time.Second, a.changed)
		if limit() != "20Mbit" {
			t.Errorf("restarted %v: then it has %s", restarted, limit())
		}
		// Of the same service what is behind is refused as ever.
		again, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Obey(desired(1, 5).GetDesired()); !errors.Is(err, ErrOld) {
			t.Errorf("restarted %v: what is behind: %v", restarted, err)
		}
		a.stop()
	}
}

// Somebody watches, and the stream is lost: it is metered as if nobody did, also before another
// controller is there.
func TestALostStreamWatchesNoMore(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	every := make(chan time.Duration, 10)
	start(t, dir, func(l *Link) { l.Closely = func(d time.Duration) { every <- d } })
	within(t, "it comes", 10*time.Second, c.hello)
	c.say <- &agents.ToAgent{Message: &agents.ToAgent_Watch{Watch: &agents.Watch{Closely: true}}}
	if d := within(t, "it looks closely", 5*time.Second, every); d != reportClosely {
		t.Errorf("it looks every %v", d)
	}
	c.stop()
	if d := within(t, "it does so no more", 10*time.Second, every); d != reportEvery {
		t.Errorf("then it looks every %v", d)
	}
}

// full is a folder on a disk of its own, in memory, on which there is no room until free is called.
func full(t *testing.T, prepare func(dir string)) (dir string, free func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a disk")
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

// troubles waits until the agent has told of those of eth0 and of the set db that have such words,
// or, for "", of none.
func (c *controller) troubles(t *testing.T, words string) {
	t.Helper()
	for end := time.After(10 * time.Second); ; {
		select {
		case m := <-c.heard:
			e := m.GetEnforced()
			if e == nil {
				continue
			}
			dev, set := e.Troubles["eth0"], e.SetTroubles["db"]
			if words == "" && dev == "" && set == "" || words != "" && strings.Contains(dev, words) && strings.Contains(set, words) {
				return
			}
		case <-end:
			t.Fatalf("no trouble is told of with %q", words)
		}
	}
}

// On a full disk the agent stays with its controller, goes on with what it has, and says why; when
// there is room it obeys what it was told meanwhile.
func TestFullDisk(t *testing.T) {
	c := newController(t)
	c.heard = make(chan *agents.FromAgent)
	dir, free := full(t, func(dir string) {
		c.join(t, dir, time.Hour)
		intent, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := intent.Obey(desired(1, 1, eth0(1, limited("10Mbit"))).GetDesired()); err != nil {
			t.Fatal(err)
		}
	})
	a := start(t, dir, func(l *Link) { l.Enforced(l.Intent.Fence(), map[string]string{}) })
	within(t, "it comes", 10*time.Second, c.hello)
	d := desired(1, 2, eth0(2, limited("20Mbit")))
	d.GetDesired().Collectives = []*agents.Document{{Name: "db", Text: "kind: Collective\nname: db\ncgroup: /a\n"}}
	c.say <- d
	c.troubles(t, "no space left on device")
	// What it was sent is not sent again.
	d = desired(1, 3, &agents.Interface{Dev: "eth0", Revision: 2})
	d.GetDesired().Collectives = []*agents.Document{{Name: "db", Text: "kind: Collective\nname: db\ncgroup: /b\n"}}
	c.say <- d
	c.say <- &agents.ToAgent{}
	if all, _ := a.Intent.Interfaces(); len(all) != 1 || all[0].OutTree.Limit.String() != "10Mbit" || a.Intent.Fence().Revision != 1 {
		t.Errorf("it goes on with %+v", all)
	}
	free()
	c.say <- &agents.ToAgent{}
	within(t, "it obeys then", 5*time.Second, a.changed)
	c.troubles(t, "")
	if all, _ := a.Intent.Interfaces(); len(all) != 1 || all[0].OutTree.Limit.String() != "20Mbit" || a.Intent.Fence().Revision != 3 {
		t.Errorf("then it has %+v", all)
	}
	if all, _ := a.Intent.Collectives(); len(all) != 1 || all[0].Cgroup != "/b" {
		t.Errorf("then it has the sets %+v", all)
	}
	if len(c.ended) > 0 {
		t.Error("the stream has ended")
	}
}

// The next certificate is asked for again and again, but not every moment, and the stream stays.
func TestFullDiskAtRenewal(t *testing.T) {
	c := newController(t)
	c.heard = make(chan *agents.FromAgent)
	dir, free := full(t, func(dir string) {
		c.join(t, dir, 5*time.Second) // two thirds of its life are over, because it began long ago
		intent, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := intent.Obey(desired(1, 1, eth0(1, limited("10Mbit"))).GetDesired()); err != nil {
			t.Fatal(err)
		}
	})
	defer free()
	start(t, dir, func(l *Link) { l.Enforced(l.Intent.Fence(), map[string]string{}) })
	within(t, "it comes", 10*time.Second, c.hello)
	for end := time.After(10 * time.Second); ; {
		select {
		case m := <-c.heard:
			if got := m.GetEnforced().GetTroubles()["eth0"]; !strings.Contains(got, "the next certificate") {
				continue
			}
		case <-end:
			t.Fatal("no trouble is told of")
		}
		break
	}
	select {
	case <-c.ended:
		t.Error("the stream has ended")
	case <-c.hello:
		t.Error("it has come again")
	case <-time.After(2 * time.Second):
	}
	if got := c.renewed.Load(); got != 1 {
		t.Errorf("it has asked %d times for a certificate", got)
	}
}
