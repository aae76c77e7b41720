package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
)

// besieged is the network: h1 attacks, h2 is the victim, and the others have nothing to do with it. h5 is at the switch of h1. A
// bystander talks to the victim.
var besieged = ring(4, 7)

const bystander = "h7"

// attack is what a host or a peer does until ctx ends.
type attack struct {
	id, what string
	run      func(ctx context.Context, s *siege) error
	// prepare, if set, runs before it.
	prepare func(ctx context.Context, s *siege) error
	// victim: the bystander pings h2 meanwhile, and an answer that does not come counts as accepted.
	victim bool
	// accepted, if set, returns what the attack has changed, besides what is shown of switches, links and ports of hosts.
	accepted func(ctx context.Context, s *siege, shown api.Network) (int, string, error)
	// kinds are the kinds of events of which one must name it.
	kinds []string
}

var attacks = []attack{
	{id: "malformed", what: "200 peers a second that send no or malformed OpenFlow to the controller", run: sendMalformed, kinds: []string{"switch-refused"}},
	{id: "lldp", what: "a host sends discovery frames that it has changed, 100 a second", prepare: captureDiscovery, run: forgeDiscovery, kinds: []string{"link-faulty"}},
	{id: "mac", what: "a host sends with the MAC address of another, 100 frames a second", prepare: meetVictim, run: spoofMAC, victim: true, accepted: victimMoved, kinds: []string{"host-elsewhere", "host-stayed"}},
	{id: "arp", what: "a host answers for the address of another, 100 times a second", prepare: meetVictim, run: spoofARP, victim: true, accepted: victimReplaced, kinds: []string{"address-claimed"}},
	{id: "packet-ins", what: "a host sends 20,000 frames a second from and to unknown addresses", run: flood, accepted: tooManyHosts, kinds: []string{"host-limit", "port-limited"}},
}

func hostileCases() (out []bench.Case) {
	for n, a := range attacks {
		id := "hostile/" + a.id
		out = append(out, bench.Case{
			Name: id, Takes: bench.Takes(9*time.Second, 40*time.Second), Run: a.measure, Alongside: together("hostile", n/2),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/accepted", "what the attack changes of the network that is shown, and of where packets go: "+a.what, accepted),
				bench.NewClaim(id+"/named", "1 if no event names it", unnamed),
				bench.NewClaim(id+"/first-ping", "worst first ping between other ports meanwhile", first20),
				bench.NewClaim(id+"/cores", "processor time of the controller and its etcd meanwhile", busyCores),
			},
		})
	}
	return out
}

// siege is an attack that goes on.
type siege struct {
	*network
	attacker *raw
	victim   *raw
	// discovery is a frame that the attacker has received.
	discovery []byte
	// unanswered are pings to the victim without an answer.
	unanswered int
	mu         sync.Mutex
	sent       int
	note       string
}

func (s *siege) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += n
}

func (a attack) measure(ctx context.Context, r *bench.Run) (err error) {
	n, err := ours.up(ctx, besieged)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	s := &siege{network: n}
	for _, open := range []struct {
		to   **raw
		host string
	}{{&s.attacker, "h1"}, {&s.victim, "h2"}} {
		if *open.to, err = openRaw(n.Node(open.host), nil); err != nil {
			return err
		}
		defer (*open.to).close()
	}
	if a.prepare != nil {
		if err := a.prepare(ctx, s); err != nil {
			return err
		}
	}
	c := n.controller()
	before, err := c.Show(ctx)
	if err != nil {
		return err
	}
	lasts := bench.Pick(r.Quick, 5*time.Second, 30*time.Second)
	pings, cores, err := a.attack(ctx, s, lasts)
	if err != nil {
		return err
	}
	after, err := c.Show(ctx)
	if err != nil {
		return err
	}
	changed, why := 0, expectedOf(n.Topology).differs(shownBy(after))
	if why != "" {
		changed++
	}
	if s.unanswered > 0 {
		changed, why = changed+s.unanswered, strings.Trim(fmt.Sprintf("%s; the bystander got no answer to %d pings to the victim", why, s.unanswered), "; ")
	}
	if a.accepted != nil {
		more, reason, err := a.accepted(ctx, s, after)
		if err != nil {
			return err
		}
		changed, why = changed+more, strings.Trim(why+"; "+reason, "; ")
	}
	named, err := a.named(ctx, c, before.At)
	if err != nil {
		return err
	}
	sheet, id := r.Sheet(bench.Ours), "hostile/"+a.id
	sheet.Set(id+"/accepted", float64(changed))
	if why != "" {
		sheet.Note(id+"/accepted", "%s", why)
	}
	sheet.Set(id+"/named", bench.Pick(named != "", 0.0, 1.0))
	if named != "" {
		sheet.Note(id+"/named", "%s", named)
	}
	if pings.lost > 0 {
		return fmt.Errorf("%d pings between other ports were not answered: %s", pings.lost, strings.Join(pings.failed[:min(len(pings.failed), 3)], ", "))
	}
	if len(pings.first) > 0 {
		sheet.Set(id+"/first-ping", slices.Max(pings.first))
		sheet.Note(id+"/first-ping", "of %d; median %s ms", len(pings.first), bench.Number(bench.Median(pings.first)))
	}
	sheet.Set(id+"/cores", cores)
	counted := after.Counters.PacketIns - before.Counters.PacketIns
	sheet.Note(id+"/cores", "%d frames or peers in %v; %d packet-ins came to the controller%s", s.sent, lasts, counted, s.note)
	return ctx.Err()
}

// attack attacks for some time, while other hosts ping each other.
func (a attack) attack(ctx context.Context, s *siege, lasts time.Duration) (pings firstPings, cores float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var all sync.WaitGroup
	var failed [4]error
	all.Go(func() { failed[0] = a.run(ctx, s) })
	var found [2]firstPings
	for i, pair := range [][2]string{{"h3", "h5"}, {"h4", "h6"}} {
		all.Go(func() {
			_ = bench.Sleep(ctx, time.Second) // the attack is under way
			found[i], failed[1+i] = everyPing(ctx, s.Node(pair[0]), s.Node(pair[1]), 300*time.Millisecond)
		})
	}
	if a.victim {
		all.Go(func() { s.unanswered, failed[3] = steadyPing(ctx, s.Node(bystander), s.Node("h2"), lasts-time.Second) })
	}
	cores, _ = s.controller().Cores(func() error { all.Wait(); return nil })
	for _, f := range found {
		pings.first, pings.lost, pings.failed = append(pings.first, f.first...), pings.lost+f.lost, append(pings.failed, f.failed...)
	}
	return pings, cores, errors.Join(failed[:]...)
}

// named returns the first event since a time that names the attack.
func (a attack) named(ctx context.Context, c *controllers.Controller, since time.Time) (string, error) {
	events, err := controllers.Ask[[]api.NetworkEvent](ctx, c, "network", "events")
	for _, e := range events {
		if e.At.After(since) && slices.Contains(a.kinds, e.Kind) {
			return e.Kind + ": " + e.Message, nil
		}
	}
	return "", err
}

// at calls send so many times a second, in turns of a millisecond or more, until ctx ends.
func at(ctx context.Context, perSecond int, send func() error) error {
	began := time.Now()
	for n := 0; ctx.Err() == nil; {
		due := int(time.Since(began).Seconds() * float64(perSecond))
		for ; n < due && ctx.Err() == nil; n++ {
			if err := send(); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
