package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
)

const (
	// askTimeout is how long a switch may take to answer what it can do. One that has not answered cannot.
	askTimeout = 5 * time.Second
	// manyTables is from how many tables on a switch is not asked for their features: it is a program, its tables are alike,
	// and each has some 2 kB of features.
	manyTables = 64
)

// capabilitiesOf asks a switch what it can do. A switch that refuses a question cannot do what the question is about
// (OpenFlow 1.3.5, section 7.3.5).
func capabilitiesOf(ctx context.Context, c *session.Conn) fabric.Capabilities {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out := fabric.Capabilities{
		Tables: max(int(c.Features().Tables), 1),
		Local:  slices.ContainsFunc(c.Ports(), func(p openflow.Port) bool { return p.No == openflow.PortLocal }),
	}
	var asked sync.WaitGroup // at once, because a switch can be far away
	var tables []openflow.TableFeatures
	var groups openflow.GroupFeatures
	var meters openflow.MeterFeatures
	if out.Tables <= manyTables {
		asked.Go(func() {
			if r, err := session.Ask[*openflow.TableFeaturesList](ctx, c, &openflow.TableFeaturesList{}); err == nil {
				tables = r.Tables
			}
		})
	}
	asked.Go(func() {
		if r, err := session.Ask[*openflow.GroupFeatures](ctx, c, &openflow.GroupFeaturesRequest{}); err == nil {
			groups = *r
		}
	})
	asked.Go(func() {
		if r, err := session.Ask[*openflow.MeterFeatures](ctx, c, &openflow.MeterFeaturesRequest{}); err == nil {
			meters = *r
		}
	})
	asked.Go(func() { out.Bundles = hasBundles(ctx, c) })
	asked.Wait()
	out.Tables, out.Entries = program.Usable(tables, out.Tables)
	out.Senders = out.Tables >= len(program.Pipeline) && program.Senders(tables)
	out.TCPFlags = out.Tables >= len(program.Pipeline) && program.TCPFlags(tables)
	most := func(t openflow.GroupType) int {
		if groups.Types>>t&1 == 0 {
			return 0
		}
		return int(groups.MaxGroups[t])
	}
	out.FastFailover, out.All, out.Select = most(openflow.GroupTypeFF), most(openflow.GroupTypeAll), most(openflow.GroupTypeSelect)
	if meters.BandTypes>>openflow.BandTypeDrop&1 == 1 {
		out.Meters, out.Bands = int(meters.MaxMeters), int(meters.MaxBands)
		out.PacketMeters = meters.Capabilities&uint32(openflow.MeterPktps) != 0
	}
	return out
}

// hasBundles opens a bundle and discards it: no message asks for this capability.
func hasBundles(ctx context.Context, c *session.Conn) bool {
	control := func(t, want openflow.BundleControlType) bool {
		answer, err := c.Request(ctx, &openflow.BundleControl{ID: 1, Control: t, Flags: openflow.BundleAtomic | openflow.BundleOrdered})
		reply, ok := answer.(*openflow.BundleControl)
		return err == nil && ok && reply.Control == want
	}
	return control(openflow.BundleOpenRequest, openflow.BundleOpenReply) && control(openflow.BundleDiscardRequest, openflow.BundleDiscardReply)
}

// lacks makes an event of each thing that a network lacks at a switch. n.mu must be held.
func (n *Network) lacks(s *attached) {
	for _, text := range program.Lost(s.capabilities) {
		n.event(fabric.Event{Kind: fabric.SwitchLimited, Switch: s.id, Text: fmt.Sprintf("switch %v: %s", s.id, text)})
	}
	n.crowds(s)
}

// crowds makes an event of a switch with more ports than are kept, once for each channel. n.mu must be held.
func (n *Network) crowds(s *attached) {
	surplus := s.conn.SurplusPorts()
	if surplus == 0 || s.crowded {
		return
	}
	s.crowded = true
	n.event(fabric.Event{Kind: fabric.SwitchLimited, Switch: s.id, Text: fmt.Sprintf("switch %v: %s", s.id, SurplusText(surplus))})
}

// SurplusText says what it means that a switch has so many ports beyond session.MaxPorts, for people.
func SurplusText(surplus int) string {
	return fmt.Sprintf("it has %d ports more than the %d that are used, those with the lowest numbers: the others carry nothing, so divide the switch into bridges with fewer ports", surplus, session.MaxPorts)
}
