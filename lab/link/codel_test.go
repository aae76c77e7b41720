package link_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// While 20 % too much arrives, CoDel begins to drop an interval after the wait has passed its target, and the time between drops is the interval over the square
// root of their number (RFC 8289, section 3.3.1 and figure 4).
func TestCoDelControlLaw(t *testing.T) {
	l := link.New(link.Spec{Rate: 10 * unit.Mbit, Queue: link.Amount{Segments: 10_000}, CoDel: &link.CoDel{}}, 1, 0)
	const size, packetTime = 1250, time.Millisecond
	var drops []time.Duration
	over := time.Duration(-1) // when a wait was first above the target
	for at := time.Duration(0); at < time.Second; at += packetTime * 10 / 12 {
		l.Offer(int64(at), link.Packet{Size: size})
		for {
			r, ok := l.Take(int64(at))
			if !ok {
				break
			}
			if r.Fate == link.Early {
				drops = append(drops, at)
			} else if waited := time.Duration(r.Departed-r.Arrived) - packetTime; over < 0 && waited >= link.DefaultTarget {
				over = at
			}
		}
	}
	if len(drops) < 10 {
		t.Fatalf("%d drops in 1 s", len(drops))
	}
	if late := drops[0] - over - link.DefaultInterval; late.Abs() > 3*packetTime {
		t.Errorf("the first drop is %v after the wait passed the target, want %v", drops[0]-over, link.DefaultInterval)
	}
	for i := range 9 {
		want := time.Duration(float64(link.DefaultInterval) / math.Sqrt(float64(i+1)))
		if got := drops[i+1] - drops[i]; (got - want).Abs() > 3*packetTime {
			t.Errorf("%v between drops %d and %d, want %v", got, i+1, i+2, want)
		}
	}
}

// A queue that is gone within an interval is a burst, and marks need senders with ECN.
func TestCoDelPassesBursts(t *testing.T) {
	for _, ecn := range []uint8{0, 1} {
		l := link.New(link.Spec{Rate: 10 * unit.Mbit, Queue: link.Amount{Segments: 10_000}, CoDel: &link.CoDel{ECN: true}}, 1, 0)
		early, marked := 0, 0
		for burst := range 10 { // each takes 90 ms of 200
			from := int64(burst) * int64(200*time.Millisecond)
			for range 90 {
				l.Offer(from, link.Packet{Size: 1250, ECN: ecn})
			}
		}
		for range 2000 { // and one that remains
			l.Offer(int64(3*time.Second), link.Packet{Size: 1250, ECN: ecn})
		}
		for {
			r, ok := l.Take(int64(10 * time.Second))
			if !ok {
				break
			}
			if r.Arrived < int64(3*time.Second) && (r.Fate == link.Early || r.Marked) {
				t.Fatalf("a segment of a burst at %v was dropped or marked", time.Duration(r.Arrived))
			}
			if r.Fate == link.Early {
				early++
			}
			if r.Marked {
				marked++
			}
		}
		if dropped := early > 0; dropped != (ecn == 0) || early+marked < 10 {
			t.Errorf("ECN %d: %d dropped, %d marked", ecn, early, marked)
		}
	}
}
