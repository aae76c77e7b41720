package controller

import (
	"cmp"
	"maps"
	"slices"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
)

// stored is a document of a host as its state is found out.
type stored struct {
	kind     api.DocumentStateKind
	name     string // of an interface or a connection set
	revision int64
}

// documentsOf returns the documents of a host, and the epoch of their revisions.
func (c *cache) documentsOf(host string) (all []stored, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	if h == nil {
		return nil, c.epoch
	}
	for _, dev := range slices.Sorted(maps.Keys(h.interfaces)) {
		all = append(all, stored{api.DocumentOfInterface, dev, h.interfaces[dev].revision})
	}
	for _, name := range slices.Sorted(maps.Keys(h.collectives)) {
		all = append(all, stored{api.DocumentOfCollective, name, h.collectives[name].revision})
	}
	return all, c.epoch
}

// documentStates returns the state of each document of a host, of which facts and enforced are what its connected agent has reported; nil if it has not.
func documentStates(documents []stored, epoch uint64, connected bool, facts *agents.Facts, enforced *agents.Enforced) []api.DocumentState {
	out := []api.DocumentState{}
	names := altNames(facts)
	for _, d := range documents {
		one := api.DocumentState{Kind: d.kind, Name: d.name, Revision: d.revision}
		fence := enforced.GetFence()
		problem, failed := enforced.GetErrors()[d.name]
		if d.kind == api.DocumentOfCollective {
			problem, failed = enforced.GetSetErrors()[d.name]
		}
		switch {
		case !connected:
			one.State = api.DocumentDisconnected
		case cmp.Or(cmp.Compare(fence.GetEpoch(), epoch), cmp.Compare(fence.GetRevision(), d.revision)) < 0:
			one.State = api.DocumentApplying
		case failed:
			one.State, one.Reason = api.DocumentRefused, &problem
		case d.kind == api.DocumentOfInterface:
			one.State, one.Reason = interfaceState(d.name, names, facts)
		default:
			one.State = api.DocumentEnforced
		}
		out = append(out, one)
	}
	return out
}

// interfaceState returns the state of the document of an interface, which the agent has without an error.
func interfaceState(dev string, names group.AltNames, facts *agents.Facts) (api.DocumentStateState, *string) {
	local := ""
	for _, d := range facts.GetDevices() {
		switch {
		case !names.MatchesDevice(dev, d.Name):
		case d.Owner == "controller":
			return api.DocumentEnforced, nil
		default:
			local = d.Name
		}
	}
	if local == "" {
		why := "the host has no device " + dev
		return api.DocumentWaiting, &why
	}
	why := "a file on the host, or another document, configures " + local
	return api.DocumentOverridden, &why
}

// altNames returns the alternative names of a host's devices.
func altNames(f *agents.Facts) group.AltNames {
	out := group.AltNames{}
	for _, d := range f.GetDevices() {
		if len(d.Altnames) > 0 {
			out[d.Name] = d.Altnames
		}
	}
	return out
}
