package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// short prints ports as switch/port, and events as kind: text.
func short(p PortID) string { return fmt.Sprintf("s%d/%d", uint64(p.Switch), p.Port) }

func texts(events []Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.Kind)+": "+e.Text)
	}
	return all
}

// linkScript runs a learner with a timeout of 300 ms.
type linkScript struct {
	t *testing.T
	*LinkLearner
}

var (
	portA, portB, portC, portD = PortID{1, 1}, PortID{2, 1}, PortID{3, 1}, PortID{4, 1}
	portA2                     = PortID{1, 2}
)

func newLinkScript(t *testing.T) linkScript {
	return linkScript{t, NewLinkLearner(300*time.Millisecond, short)}
}

func (s linkScript) want(events []Event, want ...string) {
	s.t.Helper()
	if got := texts(events); !slices.Equal(got, want) {
		s.t.Errorf("got %q, want %q", got, want)
	}
}

func (s linkScript) wantLinks(want ...LinkID) {
	s.t.Helper()
	if got := s.Links(); !slices.Equal(got, want) {
		s.t.Errorf("links %v, want %v", got, want)
	}
}

// up brings up the link between two ports.
func (s linkScript) up(p, q PortID, ms int) {
	s.t.Helper()
	s.want(s.Observe(p, q, at(ms)))
	s.want(s.Observe(q, p, at(ms+1)),
		"link-added: link "+short(q)+" -> "+short(p)+" is up", "link-added: link "+short(p)+" -> "+short(q)+" is up")
	s.wantLinks(LinkID{p, q}, LinkID{q, p})
}

const abDown = "link-removed: link s2/1 -> s1/1 is down"
const baDown = "link-removed: link s1/1 -> s2/1 is down"

func TestLinkUpAndExpired(t *testing.T) {
	s := newLinkScript(t)
	s.up(portA, portB, 0)
	s.want(s.Observe(portA, portB, at(200)))
	s.want(s.Observe(portB, portA, at(200)))
	s.want(s.Expire(at(499), nil))
	s.want(s.Expire(at(500), nil), abDown, baDown)
	s.wantLinks()
	if f := s.Faults(); len(f) > 0 {
		t.Errorf("a link that is silent in both directions is no fault: %v", f)
	}
	s.up(portA, portB, 600)
}

// A direction of which it is not sure that nothing passes stays, however long nothing is observed.
func TestLinkUnsure(t *testing.T) {
	s := newLinkScript(t)
	s.up(portA, portB, 0)
	var asked []LinkID
	unsure := func(id LinkID) bool {
		asked = append(asked, id)
		return false
	}
	s.want(s.Expire(at(299), unsure))
	if len(asked) > 0 {
		t.Errorf("asked about %v before the timeout", asked)
	}
	s.want(s.Expire(at(10_000), unsure))
	if slices.SortFunc(asked, LinkID.Compare); !slices.Equal(asked, []LinkID{{portA, portB}, {portB, portA}}) {
		t.Errorf("asked about %v", asked)
	}
	s.wantLinks(LinkID{portA, portB}, LinkID{portB, portA})
	s.want(s.Observe(portA, portB, at(10_001)))
	s.want(s.Expire(at(10_001), func(id LinkID) bool { return id == LinkID{portB, portA} }), abDown, baDown,
		"link-faulty: frames pass from s1/1 to s2/1, but not back: check the cable and the configuration of both ports")
}

func TestLinkOfPortDown(t *testing.T) {
	s := newLinkScript(t)
	s.up(portA, portB, 0)
	s.want(s.PortDown(portA, at(10)), abDown, baDown)
	s.wantLinks()
	s.want(s.Expire(at(1000), nil))
	s.up(portA, portB, 2000)
	s.want(s.SwitchGone(2, at(2010)), abDown, baDown)
	s.wantLinks()
	s.want(s.SwitchGone(2, at(2011)))
}

func TestLinkNeverAnswered(t *testing.T) {
	s := newLinkScript(t)
	for ms := 0; ms < 300; ms += 100 {
		s.want(s.Observe(portA, portB, at(ms)))
		s.want(s.Expire(at(ms), nil))
	}
	text := "frames pass from s1/1 to s2/1, but not back: check the cable and the configuration of both ports"
	s.want(s.Observe(portA, portB, at(300)))
	unsure := func(id LinkID) bool { return id != LinkID{portB, portA} }
	s.want(s.Expire(at(300), unsure))
	s.want(s.Expire(at(301), nil), "link-faulty: "+text)
	s.wantLinks()
	if f := s.Faults(); !slices.Equal(f, []Fault{{OneWay, portB, portA, text}}) {
		t.Errorf("faults %v", f)
	}
	s.want(s.Observe(portA, portB, at(400)))
	s.want(s.Observe(portB, portA, at(401)), "link-added: link s2/1 -> s1/1 is up",
		"link-added: link s1/1 -> s2/1 is up", "link-fault-cleared: port s2/1 is no longer one-way")
	if f := s.Faults(); len(f) > 0 {
		t.Errorf("faults %v", f)
	}
}

func TestLinkLosesOneDirection(t *testing.T) {
	s := newLinkScript(t)
	s.up(portA, portB, 0)
	s.want(s.Observe(portA, portB, at(250)))
	s.want(s.Expire(at(301), nil), abDown, baDown,
		"link-faulty: frames pass from s1/1 to s2/1, but not back: check the cable and the configuration of both ports")
	s.want(s.Expire(at(550), nil), "link-fault-cleared: port s2/1 is no longer one-way")
}

func TestLinkLooped(t *testing.T) {
	s := newLinkScript(t)
	s.want(s.Observe(portA, portA, at(0)), "link-faulty: port s1/1 receives its switch's own frames from s1/1: remove the cable")
	s.want(s.Observe(portA, portA2, at(0)), "link-faulty: port s1/2 receives its switch's own frames from s1/1: remove the cable")
	s.wantLinks()
}

// A hub joins three ports: each hears the two others, and none has a link.
func TestLinkOfHub(t *testing.T) {
	s := newLinkScript(t)
	ports := []PortID{portA, portB, portC}
	var events []Event
	for ms := 0; ms <= 200; ms += 100 {
		for _, p := range ports {
			for _, q := range ports {
				if p != q {
					events = append(events, s.Observe(p, q, at(ms))...)
				}
			}
		}
	}
	for _, want := range []string{"port s1/1 receives frames from both s2/1 and s3/1: connect each pair", "port s2/1 receives frames from both s1/1 and s3/1", "port s3/1 receives frames from both s1/1 and s2/1"} {
		if n := strings.Count(strings.Join(texts(events), "\n"), want); n != 1 {
			t.Errorf("%d events %q in %q", n, want, texts(events))
		}
	}
	s.wantLinks()
	if f := s.Faults(); len(f) != 3 || f[0].Kind != Shared || f[0].Port != portA || f[0].Hears != portB {
		t.Errorf("faults %v", f)
	}
	// The third switch is disconnected from the hub.
	s.SwitchGone(3, at(250))
	s.Observe(portA, portB, at(260))
	s.Observe(portB, portA, at(260))
	s.wantLinks(LinkID{portA, portB}, LinkID{portB, portA})
}

// A cable is moved behind a media converter, so that the port does not see it: the new link is up before the old one
// would have expired.
func TestLinkMoves(t *testing.T) {
	s := newLinkScript(t)
	s.up(portA, portB, 0)
	s.want(s.Observe(portC, portA, at(100)), abDown, baDown)
	s.want(s.Observe(portA, portC, at(101)), "link-added: link s3/1 -> s1/1 is up", "link-added: link s1/1 -> s3/1 is up")
	s.wantLinks(LinkID{portA, portC}, LinkID{portC, portA})
	s.want(s.Expire(at(302), nil))
	// B is heard again, while C still is: they share the port.
	s.Observe(portC, portA, at(303))
	s.Observe(portB, portA, at(304))
	s.Observe(portC, portA, at(305))
	if f := s.Faults(); len(f) == 0 || f[0].Kind != Shared {
		t.Errorf("faults %v", f)
	}
	s.wantLinks()
}

func TestLinkMiswired(t *testing.T) {
	s := newLinkScript(t)
	s.want(s.Configure([]LinkID{{portA, portB}, {portC, portD}}, at(0)))
	s.want(s.Observe(portA, portD, at(0)), "link-faulty: port s4/1 is connected to s1/1, but the configuration says s3/1: correct the cable or the configuration")
	s.want(s.Observe(portD, portA, at(1)),
		"link-added: link s4/1 -> s1/1 is up", "link-faulty: port s1/1 is connected to s4/1, but the configuration says s2/1: correct the cable or the configuration",
		"link-added: link s1/1 -> s4/1 is up")
	s.wantLinks(LinkID{portA, portD}, LinkID{portD, portA})
	if f := s.Faults(); len(f) != 2 || f[0].Kind != Miswired {
		t.Errorf("faults %v", f)
	}
	s.want(s.Configure([]LinkID{{portD, portA}}, at(2)), "link-fault-cleared: port s1/1 is no longer miswired", "link-fault-cleared: port s4/1 is no longer miswired")
}

// TestLinkLearnerProperties: after random observations a link is up if and only if its two ports hear each other, and
// no other port; events and Links agree; a port with a link has no fault; and all that was heard expires.
func TestLinkLearnerProperties(t *testing.T) {
	ports := []PortID{portA, portA2, portB, portC, portD, {2, 2}}
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 300
		l := NewLinkLearner(timeout*time.Millisecond, short)
		up := map[LinkID]bool{}
		heard := map[LinkID][2]int{} // first and last
		now := 0
		port := rapid.SampledFrom(ports)
		forget := func(drop func(LinkID) bool) {
			for id := range heard {
				if drop(id) {
					delete(heard, id)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.IntRange(1, 120).Draw(t, "ms")
			forget(func(id LinkID) bool { return now-heard[id][1] >= timeout })
			events := l.Expire(at(now), nil)
			switch p, q := port.Draw(t, "port"), port.Draw(t, "other"); rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				events = append(events, l.PortDown(p, at(now))...)
				forget(func(id LinkID) bool { return id.From == p || id.To == p })
			case 1:
				events = append(events, l.SwitchGone(p.Switch, at(now))...)
				forget(func(id LinkID) bool { return id.From.Switch == p.Switch || id.To.Switch == p.Switch })
			default:
				events = append(events, l.Observe(p, q, at(now))...)
				h, ok := heard[LinkID{p, q}]
				if !ok {
					h[0] = now
				}
				heard[LinkID{p, q}] = [2]int{h[0], now}
			}
			for _, e := range events {
				switch e.Kind {
				case LinkAdded, LinkRemoved:
					if up[e.Link] == (e.Kind == LinkAdded) {
						t.Fatalf("%q again", e.Text)
					}
					up[e.Link] = e.Kind == LinkAdded
				}
			}
			// hears returns the only port that is heard: others were silent since it was first heard.
			hears := func(p PortID) (peer PortID, ok bool) {
				last := [2]int{}
				for id, h := range heard {
					if id.To == p && h[1] > last[1] {
						peer, last = id.From, h
					}
				}
				for id, h := range heard {
					if id.To == p && id.From != peer && h[1] >= last[0] {
						return peer, false
					}
				}
				return peer, last[1] > 0
			}
			var want []LinkID
			for _, p := range ports {
				for _, q := range ports {
					a, okA := hears(p)
					b, okB := hears(q)
					if okA && okB && a == q && b == p && p.Switch != q.Switch {
						want = append(want, LinkID{p, q})
					}
				}
			}
			slices.SortFunc(want, LinkID.Compare)
			if got := l.Links(); !slices.Equal(got, want) {
				t.Fatalf("links %v, want %v (heard %v)", got, want, heard)
			}
			for id, isUp := range up {
				if isUp != slices.Contains(want, id) {
					t.Fatalf("events say %v for %v, and the links are %v", isUp, id, want)
				}
			}
			for _, f := range l.Faults() {
				if slices.ContainsFunc(want, func(id LinkID) bool { return id.From == f.Port }) {
					t.Fatalf("a link is up at a port with the fault %q", f.Text)
				}
			}
		}
		if events := l.Expire(at(now+timeout), nil); len(l.ears)+len(l.hearers) > 0 || len(l.Links())+len(l.Faults()) > 0 {
			t.Fatalf("%v remains after %q", l.ears, texts(events))
		}
	})
}

func BenchmarkLinkLearner(b *testing.B) {
	top := mesh(1000, 3000).topology(b)
	l := NewLinkLearner(time.Second, nil)
	ms := 0
	for b.Loop() { // a round of discovery, and of expiry
		ms += 250
		for _, link := range top.Links() {
			l.Observe(link.From, link.To, at(ms))
		}
		l.Expire(at(ms), nil)
	}
	if len(l.Links()) != len(top.Links()) {
		b.Fatalf("%d links of %d", len(l.Links()), len(top.Links()))
	}
}
