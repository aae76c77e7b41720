package live

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// link is the link from one switch to another.
func (w *world) link(from, to int) fabric.LinkID {
	w.Helper()
	for _, l := range w.live.Status().Links {
		if l.From.Switch == fabric.DPID(from+1) && l.To.Switch == fabric.DPID(to+1) {
			return l.LinkID
		}
	}
	w.Fatalf("no link from switch %d to switch %d", from+1, to+1)
	return fabric.LinkID{}
}

func (w *world) path(switches ...int) (p fabric.Path) {
	for n := range len(switches) - 1 {
		p = append(p, w.link(switches[n], switches[n+1]))
	}
	return p
}

// circuit is one of UDP from the host of one switch to that of another, over a path.
func (w *world) circuit(number uint32, rate unit.Rate, path ...int) program.Circuit {
	from, to := path[0], path[len(path)-1]
	host := func(n int) fabric.PortID { return fabric.PortID{Switch: fabric.DPID(n + 1), Port: 1} }
	return program.Circuit{
		Number: number, From: host(from), To: host(to), Rate: rate, Class: 1, Paths: []fabric.Path{w.path(path...)},
		Destination: netip.PrefixFrom(w.hosts[to].Addr(false), 32), Flows: []program.Traffic{{Protocol: 17}}, Unresponsive: true,
	}
}

// sent is how many messages of a type each switch got.
func (w *world) sent(t openflow.Type) (all []uint64) {
	w.live.mu.Lock()
	defer w.live.mu.Unlock()
	for n := range w.sw {
		all = append(all, w.live.switches[fabric.DPID(n+1)].conn.Counts().Sent[t])
	}
	return all
}

func (w *world) read() map[uint32]CircuitReading {
	w.net.Advance()
	return byNumber(w.live.ReadCircuits(context.Background(), nil))
}

func byNumber(all []CircuitReading) map[uint32]CircuitReading {
	by := map[uint32]CircuitReading{}
	for _, r := range all {
		by[r.Number] = r
	}
	return by
}

var circle = [][2]int{{0, 1}, {1, 2}, {0, 3}, {3, 2}}

// newCircle is four switches in a circle, which know their hosts.
func newCircle(t *testing.T, options ...oftest.Options) *world {
	return newKnown(t, circle, options...)
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }

// A circuit is set at the switches of its path alone, holds its traffic to the rate, and is read. A limit that changes takes one message, and
// no byte is counted twice or left out because of it.
func TestCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		w.live.SetCircuits(nil)
		w.settle(markAfter + time.Second)
		flows := w.sent(openflow.TypeFlowMod)
		c := w.circuit(7, 10*unit.Mbit, 0, 3, 2)
		w.live.SetCircuits([]program.Circuit{c})
		w.settle(2 * time.Second)
		for n, before := range flows {
			// One more takes the fingerprint away.
			if now, want := w.sent(openflow.TypeFlowMod)[n]-before, []uint64{2 + 1, 0, 1 + 1, 1 + 1}[n]; now != want {
				t.Errorf("switch %d got %d changes of flows, want %d", n+1, now, want)
			}
		}
		if all := w.live.Circuits(); len(all) != 1 || all[0].BestEffort || all[0].Meter == 0 || len(all[0].Lacks) > 0 {
			t.Errorf("the circuits are %+v", all)
		}
		w.net.Advance()
		stream := w.stream(0, 2)
		defer stream.Stop()
		began := time.Now()
		defer w.net.AdvanceEvery(10 * time.Millisecond)()
		if first := w.read()[7]; first.Interval != 0 || first.Offered != 0 {
			t.Errorf("the first reading is %+v", first)
		}
		time.Sleep(time.Second)
		w.read() // with the burst
		time.Sleep(time.Second)
		r := w.read()[7]
		if r.Interval != time.Second || !near(float64(r.Offered), float64(hostRate)) || !near(float64(r.Passed), 10e6) {
			t.Errorf("the third reading is %+v", r)
		}
		for _, l := range [][2]int{{0, 3}, {3, 2}, {0, 1}} {
			if got, want := w.links()[linkName(l)], map[[2]int]float64{{0, 3}: 10e6 * 1500 / 1496, {3, 2}: 10e6 * 1500 / 1496}[l]; math.Abs(got-want) > 0.01*want+float64(discoveryRate) {
				t.Errorf("link %v carries %.0f bit/s, want %.0f", l, got, want)
			}
		}

		meters, flows := w.sent(openflow.TypeMeterMod), w.sent(openflow.TypeFlowMod)
		for _, limit := range []unit.Rate{5 * unit.Mbit, 5 * unit.Mbit, 20 * unit.Mbit} {
			time.Sleep(500 * time.Millisecond)
			w.live.SetLimits(map[uint32]program.Limit{7: {Rate: limit, Unresponsive: true}, 8: {Rate: unit.Mbit}})
		}
		time.Sleep(time.Second)
		w.read()
		time.Sleep(time.Second)
		r = w.read()[7]
		if !near(float64(r.Offered), float64(hostRate)) || !near(float64(r.Passed), 20e6) {
			t.Errorf("with a limit of 20 Mbit/s the reading is %+v", r)
		}
		if got, want := float64(r.OfferedBytes)*8, float64(hostRate)*time.Since(began).Seconds(); !near(got, want) {
			t.Errorf("%.0f bits were counted of %.0f", got, want)
		}
		w.settle(time.Second)
		if got := w.sent(openflow.TypeMeterMod)[0] - meters[0]; got != 2 {
			t.Errorf("two limits that changed took %d messages", got)
		}
		if !slices.Equal(w.sent(openflow.TypeFlowMod), flows) {
			t.Error("a limit has changed flows")
		}

		// What is planned for other reasons leaves the limit as it is.
		w.live.SetCircuits([]program.Circuit{c, w.circuit(8, unit.Mbit, 0, 1)})
		w.settle(2 * time.Second)
		if got := w.sent(openflow.TypeMeterMod)[0] - meters[0]; got != 3 {
			t.Errorf("two limits and another circuit took %d messages", got)
		}
		if b := w.sw[0].MeterConfigs(); !slices.ContainsFunc(b, func(m openflow.MeterConfig) bool {
			return m.Bands[0].(openflow.DropBand).Rate == 20_000
		}) {
			t.Errorf("the meters are %v", b)
		}
		w.live.SetCircuits(nil)
		w.settle(2 * time.Second)
		if len(w.read()) > 0 || len(w.live.Circuits()) > 0 {
			t.Error("circuits that ended are read")
		}
		for n, s := range w.sw {
			for _, f := range s.Flows() {
				if k, _ := program.KindOf(f.Cookie); k >= program.KindCircuit && k <= program.KindArrive {
					t.Errorf("switch %d has kept %v", n+1, f.Match)
				}
			}
		}
	})
}

func linkName(l [2]int) string { return string(rune('1'+l[0])) + "-" + string(rune('1'+l[1])) }

// A circuit changes to another path and back without the loss of a frame, also if messages to the first switch take longer than those to the
// others, or the other way round.
func TestCircuitMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		here, there := w.circuit(7, 100*unit.Mbit, 0, 3, 2), w.circuit(7, 100*unit.Mbit, 0, 1, 2)
		w.live.SetCircuits([]program.Circuit{here})
		w.settle(2 * time.Second)
		w.hosts[2].Forget()
		sent := 0
		for i := range 6 {
			for n := range w.sw {
				w.late[n][0].Store(0)
				if (n == 0) == (i < 3) {
					w.late[n][0].Store(int64(20 * time.Millisecond))
				}
			}
			w.live.SetCircuits([]program.Circuit{[]program.Circuit{there, here}[i%2]})
			for range 700 {
				w.hosts[0].SendUDP(1, netip.AddrPortFrom(w.hosts[2].Addr(false), 9), make([]byte, 100))
				sent++
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := len(w.hosts[2].Received()); got < sent {
			t.Errorf("%d of %d frames arrived", got, sent)
		}
	})
}

// Changes that come faster than they can be made do not keep each other from coming into force, and the newest one is.
func TestManyChangesOfCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		w.live.SetCircuits(nil)
		var all []program.Circuit
		for n := range uint32(100) {
			all = append(all, w.circuit(n+1, unit.Mbit, 0, 3, 2))
			all[n].Flows[0].Destination = program.Ports{First: uint16(n + 1), Last: uint16(n + 1)}
			w.live.SetCircuits(all)
			time.Sleep(10 * time.Millisecond)
			if has := len(w.live.Circuits()); n > 20 && has < int(n)-20 {
				t.Fatalf("after %d changes %d circuits are planned", n+1, has)
			}
		}
		if w.live.Settled() {
			t.Error("the network is settled while a change is made")
		}
		w.settle(time.Second)
		if got := len(w.live.Circuits()); got != 100 || len(w.sw[0].MeterConfigs()) < 100 {
			t.Errorf("%d circuits and %d meters", got, len(w.sw[0].MeterConfigs()))
		}
	})
}

// Without a controller a circuit stays in force. A new controller leaves it alone until it knows the circuits, and changes nothing if it
// has the same.
func TestCircuitsOfEarlierController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		c := w.circuit(7, 10*unit.Mbit, 0, 3, 2)
		w.live.SetCircuits([]program.Circuit{c})
		w.settle(2 * time.Second)
		had := func() (all []string) {
			for _, s := range w.sw {
				for _, f := range s.Flows() {
					if k, _ := program.KindOf(f.Cookie); k >= program.KindCircuit && k <= program.KindArrive {
						all = append(all, f.Match.String())
					}
				}
			}
			return all
		}
		before := had()
		if len(before) != 4 {
			t.Fatalf("the circuit is %q", before)
		}
		w.stop()
		w.start(2)
		w.settle(15 * time.Second)
		if !slices.Equal(had(), before) {
			t.Errorf("before it knows the circuits, a new controller leaves %q of %q", had(), before)
		}
		changes := [2][]uint64{w.sent(openflow.TypeFlowMod), w.sent(openflow.TypeMeterMod)}
		w.live.SetCircuits([]program.Circuit{c})
		w.settle(2 * time.Second)
		if now := [2][]uint64{w.sent(openflow.TypeFlowMod), w.sent(openflow.TypeMeterMod)}; !slices.Equal(now[0], changes[0]) || !slices.Equal(now[1], changes[1]) || !slices.Equal(had(), before) {
			t.Errorf("the same circuit took %v messages of flows and meters, after %v", now, changes)
		}
		w.live.SetCircuits(nil)
		w.settle(2 * time.Second)
		if left := had(); len(left) > 0 {
			t.Errorf("circuits that ended left %q", left)
		}
	})
}

// A circuit whose path goes down is best effort, which is visible, and is itself again when the path is back.
func TestCircuitWithoutPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		w.live.SetCircuits([]program.Circuit{w.circuit(7, 10*unit.Mbit, 0, 3, 2)})
		w.settle(2 * time.Second)
		w.cables[3].Unplug()
		w.settle(2 * time.Second)
		if all := w.live.Circuits(); len(all) != 1 || !all[0].BestEffort || len(all[0].Lacks) != 2 {
			t.Errorf("without its path the circuit is %+v", all)
		}
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
		if len(w.read()) > 0 {
			t.Error("a circuit that is best effort is read")
		}
		if err := w.cables[3].Plug(); err != nil {
			t.Fatal(err)
		}
		w.settle(3 * time.Second)
		if all := w.live.Circuits(); len(all) != 1 || all[0].BestEffort || len(all[0].Lacks) > 0 {
			t.Errorf("with its path again the circuit is %+v", all)
		}
	})
}

// Circuits that share a meter, and those without one, are read by their flows.
func TestReadingOfFlows(t *testing.T) {
	for meters, want := range map[int]map[uint32][2]float64{
		1:  {7: {float64(hostRate), 10e6}, 8: {float64(hostRate), 10e6}},                           // 20 Mbit/s together
		-1: {7: {float64(hostRate), float64(hostRate)}, 8: {float64(hostRate), float64(hostRate)}}, // no limit
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newCircle(t, oftest.Options{Limits: oftest.Limits{Meters: meters}})
			one, other := w.circuit(7, 10*unit.Mbit, 0, 3, 2), w.circuit(8, 10*unit.Mbit, 0, 1)
			w.live.SetCircuits([]program.Circuit{one, other})
			w.settle(2 * time.Second)
			w.net.Advance()
			for _, to := range []int{2, 1} {
				defer w.stream(0, to).Stop()
			}
			defer w.net.AdvanceEvery(10 * time.Millisecond)()
			time.Sleep(2 * time.Second)
			w.read()
			time.Sleep(2 * time.Second)
			for number, r := range w.read() {
				if !near(float64(r.Offered), want[number][0]) || !near(float64(r.Passed), want[number][1]) {
					t.Errorf("with %d meters, circuit %d is %+v, want %v", meters, number, r, want[number])
				}
				delete(want, number)
			}
			if len(want) > 0 {
				t.Errorf("with %d meters, no reading of %v", meters, want)
			}
		})
	}
}

// A circuit that was best effort for a moment, because its path went down, has other meters and flows then. What they did not count is no
// lower rate: a limit that followed one would drop what the sender still sends.
func TestReadingAcrossAnotherPath(t *testing.T) {
	for _, meters := range []int{8, 1, -1} {
		synctest.Test(t, func(t *testing.T) {
			w := newCircle(t, oftest.Options{Limits: oftest.Limits{Meters: meters}})
			here, there, other := w.circuit(7, 100*unit.Mbit, 0, 3, 2), w.circuit(7, 100*unit.Mbit, 0, 1, 2), w.circuit(8, unit.Mbit, 0, 1)
			w.live.SetCircuits([]program.Circuit{here, other})
			w.settle(2 * time.Second)
			w.net.Advance()
			defer w.stream(0, 2).Stop()
			defer w.net.AdvanceEvery(10 * time.Millisecond)()
			rates := 0
			for n := range 20 {
				time.Sleep(250 * time.Millisecond)
				if n == 8 {
					w.cables[3].Unplug()
					time.Sleep(20 * time.Millisecond)
					w.live.SetCircuits([]program.Circuit{there, other})
				}
				r, ok := w.read()[7]
				if !ok || r.Interval == 0 {
					continue
				}
				if rates++; float64(r.Offered) < 0.98*float64(hostRate) {
					t.Errorf("with %d meters, reading %d is %+v, of %v", meters, n, r, hostRate)
				}
			}
			if rates < 16 {
				t.Errorf("with %d meters, %d of 20 readings have a rate", meters, rates)
			}
		})
	}
}

// A rate is by the time in which the switch has counted, and not by when its answer came.
func TestRateByTheClockOfTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCircle(t)
		w.live.SetCircuits([]program.Circuit{w.circuit(7, 50*unit.Mbit, 0, 3, 2)})
		w.settle(2 * time.Second)
		w.net.Advance()
		defer w.stream(0, 2).Stop()
		defer w.net.AdvanceEvery(200 * time.Millisecond)()
		var at time.Time
		for n := range 24 {
			if n < 8 {
				time.Sleep(430 * time.Millisecond) // not as often as the switch counts
			} else {
				time.Sleep(130 * time.Millisecond) // more often: some readings are of no time
			}
			r := byNumber(w.live.ReadCircuits(t.Context(), nil))[7]
			if rate := float64(r.Offered); n > 1 && (r.Interval%(200*time.Millisecond) != 0 || !near(rate, float64(hostRate)) && r.Interval > 0 || r.At.Sub(at) != r.Interval) {
				t.Errorf("the switch counts each 200 ms, and reading %d is %+v", n, r)
			}
			at = r.At
		}
	})
}
