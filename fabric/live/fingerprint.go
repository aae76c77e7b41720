package live

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// To read 13,000 flows of each of 1,000 switches takes a minute of a processor. A switch that has not changed for a while has a
// fingerprint of its program (program.Discovery), and a controller that makes the same program reads only what it cannot know. A flow that
// somebody else has changed without its cookie, and without another number of flows, is found by the next audit (auditInterval).

// markAfter is after what time without a change a switch gets the fingerprint, chosen for Headgate.
const markAfter = 2 * time.Second

// executable is the hash of the program that runs, nil if it cannot be read: then no switch gets a fingerprint.
var executable = sync.OnceValue(func() []byte {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil
	}
	return h.Sum(nil)
})

// recognize reads what a controller without memory cannot know of a switch: its hosts and its label, and towards which others it has flows unless
// that is known. With a fingerprint and no flows of others that is enough until there is a plan, and for a switch with many flows, too: the rest is
// read when it can be compared. ok is false if all must be read at once.
func (n *Network) recognize(ctx context.Context, s *attached) (state program.State, have had, ok bool) {
	if executable() == nil {
		return state, have, false
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var all int
	var flows [5][]openflow.FlowStats
	asked := errgroup.Group{} // at once: with a thousand switches each answer takes a while
	read := func(k program.Kind, into *[]openflow.FlowStats) {
		asked.Go(func() (err error) {
			*into, err = flowsOf(ctx, s.conn, openflow.FlowsWith(program.OfKind(k)))
			return err
		})
	}
	count := func(f openflow.FlowFilter, into *int) {
		asked.Go(func() (err error) {
			*into, err = countOf(ctx, s.conn, f)
			return err
		})
	}
	for i, k := range [...]program.Kind{program.KindDiscovery, program.KindHere, program.KindLinkPort, program.KindKnown, program.KindNeighbour} {
		read(k, &flows[i])
	}
	count(openflow.AllFlows(), &all)
	count(ours, &have.flows)
	if asked.Wait() != nil || len(flows[0]) == 0 {
		return state, have, false
	}
	if have.flows == all { // there are none of others
		have.fingerprint = program.FingerprintOf(flows[0])
	}
	if have.fingerprint == 0 {
		if have.flows <= fewChanges {
			return state, have, false
		}
		have = had{}
	}
	state.Flows = slices.Concat(flows[:]...)
	if !n.isAdopted(state.Flows) {
		var toward []openflow.FlowStats
		read(program.KindToward, &toward)
		if asked.Wait() != nil {
			return state, have, false
		}
		state.Flows = append(state.Flows, toward...)
	}
	return state, have, true
}

// isAdopted reports whether an other switch is known to have flows towards this one. Those that it reaches are then known, too.
func (n *Network) isAdopted(flows []openflow.FlowStats) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range flows {
		if k, _ := program.KindOf(f.Cookie); k == program.KindHere {
			if label, ok := f.Match.Get(openflow.FieldVLANVID); ok && n.adopted[program.VLANOf(label)] {
				return true
			}
		}
	}
	return false
}

// fingerprint is what a switch that has a plan, and nothing of others, keeps and counts.
func (n *Network) fingerprint(id fabric.DPID, c *program.Connectivity) (is had) {
	_ = n.compute(func() (err error) {
		is.fingerprint, is.flows, err = n.fingerprints(c).Switch(id)
		return err
	})
	return is
}

// fingerprints are those of a plan. Most switches have the same.
func (n *Network) fingerprints(c *program.Connectivity) *program.Fingerprints {
	n.comparing.Lock()
	defer n.comparing.Unlock()
	if n.prints == nil || n.prints.Of != c {
		n.prints = c.Fingerprints(executable())
	}
	return n.prints
}

// mark gives a switch the fingerprint of what it has.
func (n *Network) mark(s *attached, have had) had {
	if have.plan == nil || have.fingerprint != 0 || len(have.foreign.Flows) > 0 || executable() == nil {
		return have
	}
	is := n.fingerprint(s.id, have.plan)
	if is.fingerprint == 0 || is.flows != have.flows || s.conn.Send(program.Discovery(is.fingerprint).Mod()) != nil {
		return have
	}
	have.fingerprint = is.fingerprint
	return have
}
