package live

import (
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// with counts the switches that have a rule of a kind for the MAC of a host.
func (w *world) with(kind program.Kind, to openflow.MAC) (n int) {
	for _, s := range w.sw {
		for _, f := range s.Flows() {
			dst, ok := f.Match.Get(openflow.FieldEthDst)
			if k, _ := program.KindOf(f.Cookie); k == kind && ok && dst.MAC() == to {
				n++
			}
		}
	}
	return n
}

// The switch of a new host delivers to it before any other switch sends to it, and a packet in between arrives by the controller.
func TestDeliveredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(2 * time.Second)
		to := w.hosts[3]
		to.Announce()
		time.Sleep(gather + deliverFirst/2)
		synctest.Wait()
		if own, others := w.with(program.KindHost, to.MAC()), w.with(program.KindRemote, to.MAC()); own != 1 || others != 0 {
			t.Errorf("%d switches deliver and %d send to a new host, want 1 and 0", own, others)
		}
		ping := w.hosts[0].Ping(to.Addr(false))
		w.settle(time.Second)
		if _, ok := ping.RTT(); !ok {
			t.Error("no answer to the first ping")
		}
		if n := w.with(program.KindRemote, to.MAC()); n != 3 {
			t.Errorf("%d switches send to the host in the end, want 3", n)
		}
	})
}
