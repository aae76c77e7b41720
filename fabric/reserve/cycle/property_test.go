package cycle

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// TestInvariants: on random networks whose reservations begin, end and change, with switches that do not answer, no link
// has limits above its capacity, a flow that offered its reservation has it in the next cycle, and the messages are those
// that bring the points from one set of limits to the next.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		switches := rapid.IntRange(2, 5).Draw(t, "switches")
		var cables [][2]fabric.DPID
		for i := 2; i <= switches; i++ {
			cables = append(cables, [2]fabric.DPID{fabric.DPID(rapid.IntRange(1, i-1).Draw(t, "to")), fabric.DPID(i)})
		}
		for range rapid.IntRange(0, 2).Draw(t, "more cables") {
			a := rapid.IntRange(1, switches-1).Draw(t, "from")
			cables = append(cables, [2]fabric.DPID{fabric.DPID(a), fabric.DPID(rapid.IntRange(a+1, switches).Draw(t, "to"))})
		}
		top := topology(t, switches, 100*unit.Mbit, cables...)
		next := top.NextHops()
		book, err := reserve.NewBook(top, reserve.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
		leaving := rapid.Bool().Draw(t, "meters of links")
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
				drawReservation(t, book, p.at.Wall, switches, step)
				n := Network{Topology: top, Enforcers: metered(top), Reservations: book.All(), Grace: 3 * time.Second}
				if leaving {
					n.Enforcers.Leaving = n.Enforcers.Meters
				}
				n.BestEffort = BestEffort(n, next)
				p.set(n)
			}
			offered := map[FlowID]unit.Rate{}
			for _, l := range p.cycle.Limits() {
				id := l.Flow
				offered[id] = unit.Rate(rapid.IntRange(0, 200).Draw(t, "offered")) * unit.Mbit
				p.silent[id] = rapid.IntRange(0, 9).Draw(t, "silent") == 0
			}
			p.run(time.Duration(rapid.IntRange(100, 3000).Draw(t, "ms"))*time.Millisecond, offered)
			checkPlant(t, p)
		}
	})
}

func drawReservation(t *rapid.T, book *reserve.Book, now time.Time, switches, step int) {
	from := rapid.IntRange(1, switches).Draw(t, "source")
	to := (from+rapid.IntRange(0, switches-2).Draw(t, "distance"))%switches + 1
	r := request(fmt.Sprint("r", step), rapid.IntRange(1, 4).Draw(t, "class"), port(fabric.DPID(from), 1), port(fabric.DPID(to), 1),
		unit.Rate(rapid.IntRange(1, 90).Draw(t, "forward"))*unit.Mbit, unit.Rate(rapid.IntRange(0, 20).Draw(t, "reverse"))*unit.Mbit)
	r.Start = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "start")) * time.Second)
	r.Duration = time.Duration(rapid.IntRange(1, 20).Draw(t, "duration")) * time.Second
	r.Protected = rapid.Bool().Draw(t, "protected")
	_, _ = book.Admit(r, now) // a refusal is as good
}

func checkPlant(t *rapid.T, p *plant) {
	carried := make([]unit.Rate, len(p.cycle.plan.capacities))
	for _, s := range p.cycle.states {
		for _, l := range s.links {
			carried[l] += s.limit
		}
		if s.ran && s.offered >= s.guarantee() && s.limit < s.guarantee() {
			t.Fatalf("%v offered %v and has %v of its reservation of %v", s.id, s.offered, s.limit, s.reserved)
		}
	}
	for l, c := range p.cycle.plan.capacities {
		if carried[l] > c {
			t.Fatalf("link %d has limits of %v, and %v", l, carried[l], c)
		}
	}
	inForce := map[FlowID]Limit{}
	for _, l := range p.cycle.Limits() {
		inForce[l.Flow] = l
	}
	if !maps.Equal(inForce, p.limits) {
		t.Fatalf("the points have %v, want %v", p.limits, inForce)
	}
	falls := slices.IndexFunc(p.cycle.states, func(s *state) bool { return s.point.Kind == Nowhere && len(s.spares) == 0 })
	if falls >= 0 {
		t.Fatalf("%v is limited nowhere", p.cycle.states[falls].id)
	}
}
