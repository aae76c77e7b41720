package controller

import (
	"cmp"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/redirect"
)

// networkOf returns the API form of a network.
func networkOf(s live.Status) api.Network {
	out := api.Network{
		At: s.At, Name: nonZero(s.Name), Sites: &[]api.NetworkSite{}, Settled: s.Settled, Listen: []api.NetworkListener{}, Switches: []api.NetworkSwitch{}, Links: []api.NetworkLink{}, Hosts: []api.NetworkHost{}, Faults: []api.NetworkFault{},
		Counters: api.NetworkCounters{
			PacketIns: int64(s.Counters.PacketIns), Dropped: int64(s.Counters.Dropped), Forged: int64(s.Counters.Forged),
			Answered: int64(s.Counters.Answered), Flooded: int64(s.Counters.Flooded), Plans: int64(s.Counters.Plans),
		},
	}
	for _, one := range s.Sites {
		*out.Sites = append(*out.Sites, api.NetworkSite{Name: one.Name, Parent: nonZero(one.Parent)})
	}
	for _, one := range s.Switches {
		out.Switches = append(out.Switches, networkSwitchOf(one))
	}
	for _, l := range s.Links {
		source := api.NetworkLinkCapacitySource(l.Source.String())
		if l.Assumed {
			source = api.CapacityAssumed
		}
		cost := int(l.Cost)
		out.Links = append(out.Links, api.NetworkLink{
			From: portIDOf(l.From), To: portIDOf(l.To), CapacityBps: int64(l.Capacity), CapacitySource: source, Cost: &cost,
			RateBps: rateOf(l.Rate), DropsPerS: known(l.Drops), ErrorsPerS: known(l.Errors),
		})
	}
	for _, h := range s.Hosts {
		one := api.NetworkHost{Mac: h.MAC.String(), Name: nonZero(h.Name), Vlan: nonZero(int(h.VLAN)), Addresses: []string{}, At: portIDOf(h.At), Learned: api.NetworkHostLearned(h.Learned.String())}
		for _, a := range h.Addrs {
			one.Addresses = append(one.Addresses, a.String())
		}
		out.Hosts = append(out.Hosts, one)
	}
	if len(s.Relays) > 0 {
		relays := []api.NetworkRelay{}
		for _, r := range s.Relays {
			relays = append(relays, networkRelayOf(r))
		}
		out.Relays = &relays
	}
	if s.Redirects {
		c := s.Redirection
		out.Redirection = &api.NetworkRedirection{
			Connections: s.Redirected, Asked: int64(c.Asked), Redirected: int64(c.Redirected), Direct: int64(c.Direct), Failed: int64(c.Failed), Bypassed: int64(c.Bypassed),
		}
	}
	for _, f := range s.Faults {
		out.Faults = append(out.Faults, api.NetworkFault{Kind: api.NetworkFaultKind(f.Kind), At: portIDOf(f.Port), Peer: optionalPort(f.Hears), Message: f.Text})
	}
	return out
}

func networkRelayOf(r redirect.Agent) api.NetworkRelay {
	out := api.NetworkRelay{Name: r.Name, Mac: r.Host.MAC.String(), At: portIDOf(r.Host.At), Takes: r.Takes, Connects: r.Connects, Exits: []api.NetworkRelayExit{}}
	for _, e := range r.Exits {
		one := api.NetworkRelayExit{Address: e.Address.String(), Destinations: []string{}}
		if len(e.Ports) > 0 {
			ports := []int{}
			for _, p := range e.Ports {
				ports = append(ports, int(p))
			}
			one.Ports = &ports
		}
		for _, d := range e.Destinations {
			one.Destinations = append(one.Destinations, d.String())
		}
		out.Exits = append(out.Exits, one)
	}
	return out
}

func networkSwitchOf(s live.SwitchStatus) api.NetworkSwitch {
	out := api.NetworkSwitch{
		Id: s.ID.String(), Name: nonZero(s.Name), Site: nonZero(s.Site), Address: s.Address, Current: s.Current, Ports: []api.NetworkPort{},
		Manufacturer: nonZero(s.Desc.Manufacturer), Hardware: nonZero(s.Desc.Hardware), Software: nonZero(s.Desc.Software),
		SerialNumber: nonZero(s.Desc.SerialNum), Description: nonZero(s.Desc.Datapath),
		Capabilities: switchCapabilitiesOf(s.Capabilities), Limits: append([]string{}, program.Lost(s.Capabilities)...),
	}
	if s.SurplusPorts > 0 {
		out.Limits = append(out.Limits, live.SurplusText(s.SurplusPorts))
	}
	if s.Problem != nil {
		out.Error = nonZero(s.Problem.Error())
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, api.NetworkPort{
			Number: int64(p.No), Name: nonZero(p.Name), SpeedBps: nonZero(int64(p.Speed)), State: api.NetworkPortState(p.State.String()), Use: api.NetworkPortUse(p.Use),
			RxBps: rateOf(p.Rx.Rate), TxBps: rateOf(p.Tx.Rate),
		})
	}
	return out
}

func switchCapabilitiesOf(c fabric.Capabilities) api.SwitchCapabilities {
	return api.SwitchCapabilities{
		Tables: c.Tables, FlowsPerTable: nonZero(int64(c.Entries)), FastFailoverGroups: int64(c.FastFailover), AllGroups: int64(c.All),
		SelectGroups: int64(c.Select), Meters: int64(c.Meters), Bundles: c.Bundles,
	}
}

func portIDOf(p fabric.PortID) api.NetworkPortID {
	return api.NetworkPortID{Switch: p.Switch.String(), Port: int64(p.Port)}
}

func optionalPort(p fabric.PortID) *api.NetworkPortID {
	if p == (fabric.PortID{}) {
		return nil
	}
	out := portIDOf(p)
	return &out
}

// nonZero returns a pointer to v, nil for the zero value.
func nonZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// networkEventOf returns the API form of an event.
func networkEventOf(e fabric.Event) api.NetworkEvent {
	out := api.NetworkEvent{At: e.Time, Kind: string(e.Kind), Port: optionalPort(e.Port), Message: e.Text}
	if e.Switch != 0 {
		out.Switch = nonZero(e.Switch.String())
	}
	if e.Link != (fabric.LinkID{}) {
		out.Link = &api.NetworkLinkEnds{From: portIDOf(e.Link.From), To: portIDOf(e.Link.To)}
	}
	if e.Count > 1 {
		out.Count, out.Last = &e.Count, &e.Last
	}
	if e.Host != (fabric.HostID{}) {
		out.Host = nonZero(e.Host.String())
	}
	return out
}

// flowsOf returns the API form of the flows of a switch, in the order of tables and priorities.
func flowsOf(flows []openflow.FlowStats) api.SwitchFlowList {
	flows = slices.Clone(flows)
	slices.SortStableFunc(flows, func(a, b openflow.FlowStats) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority))
	})
	out := api.SwitchFlowList{Items: []api.SwitchFlow{}}
	for _, f := range flows {
		one := api.SwitchFlow{
			Table: int(f.Table), Priority: int(f.Priority), Match: f.Match.String(), Instructions: f.Instructions.String(),
			Packets: int64(f.Packets), Bytes: int64(f.Bytes), AgeNs: f.Duration.Duration().Nanoseconds(),
		}
		if table, rule, ok := program.RuleOf(f.Table, f.Cookie); ok {
			one.TableName, one.Rule = &table.Name, nonZero(rule.Matches+": "+rule.Actions)
		}
		out.Items = append(out.Items, one)
	}
	return out
}
