package host

import (
	"iter"
	"maps"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// Connections that another build capped stay capped until its program has released them.
func TestClearAfterAnotherBuild(t *testing.T) {
	labtest.NeedRoot(t)
	name := instance()
	table, err := sockops.Open(name, 8)
	if err == nil {
		err = table.Attach(sockops.Set{Number: 1, Cgroup: "/" + filepath.Base(labtest.Cgroup(t))})
	}
	if err != nil {
		t.Fatal(err)
	}
	a, b := pipe(t, "127.0.0.1:0")
	speak(t, a, b)
	pace := func() (rate int) {
		t.Helper()
		with(t, a, func(fd int) {
			if rate, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); err != nil {
				t.Fatal(err)
			}
		})
		return rate
	}
	const held = 1e6 / 8
	for range 100 {
		for c := range table.Connections() {
			if c.Local == a.LocalAddr().(*net.TCPAddr).AddrPort() {
				table.Cap(c, held, 0, sockops.Now()+200*time.Millisecond)
			}
		}
		if speak(t, a, b); pace() == held {
			break
		}
	}
	table.Close() // as if it were killed
	t.Cleanup(func() { _, _, _ = Clear(name) })
	counts, err := ebpf.LoadPinnedMap(filepath.Join("/sys/fs/bpf/headgate/collective", name, "counts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer counts.Close()
	if err := counts.Put(uint32(2), uint64(1)); err != nil { // the layout number of another build
		t.Fatal(err)
	}
	if found, idle, err := Clear(name); !found || idle != 1 || err != nil {
		t.Errorf("while one is capped: found %v, idle %d, %v", found, idle, err)
	}
	if got := pace(); got != held {
		t.Errorf("pace of the idle connection is %d, so the test is void", got)
	}
	speak(t, a, b)
	if got := pace(); got == held {
		t.Error("the connection is capped although it sends again")
	}
	if found, idle, err := Clear(name); !found || idle != 0 || err != nil {
		t.Errorf("when none is capped: found %v, idle %d, %v", found, idle, err)
	}
	if there, err := sockops.Exists(name); there || err != nil {
		t.Errorf("the table was not removed: %v, %v", there, err)
	}
}

// capsAll is a control that caps every connection.
type capsAll struct{ collective.Control }

func (*capsAll) Controlling() bool { return true }
func (*capsAll) Caps(time.Duration) iter.Seq2[collective.ID, collective.Cap] {
	return maps.All(map[collective.ID]collective.Cap{1: {Rate: unit.Mbit}})
}

// A dry run reports the caps, and does not access the table, which is nil.
func TestDryRun(t *testing.T) {
	m := &member{Connection: &sockops.Connection{ID: 1, Segment: 1448}}
	p := &part{control: &capsAll{}, members: map[collective.ID]*member{1: m}}
	p.applyCaps(nil, time.Second, true)
	if got := p.state().Connections[0].Pace; got != unit.Mbit {
		t.Errorf("reported pace is %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a normal run does not access the table, either, so the test is void")
		}
	}()
	p.applyCaps(nil, time.Second, false)
}
