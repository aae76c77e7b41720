package controller

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/unit"
)

// Lists of agents' reports are merged from all controllers, because each host's agent is
// connected to only one of them.

// merges are the merge functions of the operations with server.AllAgents.
var merges = map[string]func(all [][]byte) (any, error){"getUsage": mergeUsage, "listHosts": mergeHosts, "getOverview": mergeOverview}

// merge answers a request with the merged answers of this controller and the others. The answer of a
// controller that does not respond is left out.
func (f *forwarder) merge(w http.ResponseWriter, r *http.Request, together func(all [][]byte) (any, error)) {
	own := server.RecordResponse(f.next, r)
	all := [][]byte{own.Body.Bytes()}
	if own.Status == http.StatusOK {
		all = append(all, f.queryPeers(r)...)
	}
	out, err := together(all)
	if err != nil || len(all) == 1 {
		own.Replay(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

// queryPeers sends a request to all other controllers and returns the bodies of the successful answers.
func (f *forwarder) queryPeers(r *http.Request) (all [][]byte) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, at := range f.peers {
		asked.Go(func() {
			answer, body, err := f.forward(r, at, nil, mergeTimeout)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && answer.StatusCode == http.StatusOK {
				all = append(all, body)
			}
		})
	}
	asked.Wait()
	return all
}

// mergeTimeout is the timeout of another controller's answer, which queries agents in turn.
const mergeTimeout = usageTimeout + 2*time.Second

// mergeUsage collects the rows of all controllers. missing lists the hosts whose agents are connected
// to none of them.
func mergeUsage(all [][]byte) (any, error) {
	out := api.UsageList{Items: []api.Usage{}}
	var missing map[string]bool
	for _, text := range all {
		var l api.UsageList
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		for _, u := range l.Items {
			// An agent that changes its controller meanwhile may answer twice; the first answer counts.
			if missing == nil || missing[u.Host] {
				out.Items = append(out.Items, u)
			}
		}
		here := map[string]bool{}
		if l.Missing != nil {
			for _, host := range *l.Missing {
				here[host] = missing == nil || missing[host]
			}
		}
		missing = here
	}
	names := []string{}
	for host, everywhere := range missing {
		if everywhere {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	out.Missing = &names
	slices.SortStableFunc(out.Items, func(a, b api.Usage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Group, b.Group))
	})
	return out, nil
}

// mergeHosts takes the state of each host from the controller to which its agent is connected.
func mergeHosts(all [][]byte) (any, error) {
	var out api.HostList
	for n, text := range all {
		var l api.HostList
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		if n == 0 {
			out = l
			continue
		}
		for _, h := range l.Items {
			i := slices.IndexFunc(out.Items, func(o api.HostState) bool { return o.Name != nil && h.Name != nil && *o.Name == *h.Name })
			if i >= 0 && h.Connected != nil && *h.Connected {
				out.Items[i] = h
			}
		}
	}
	return out, nil
}

// mergeOverview adds up the totals of all controllers, and takes the rates of each host from the
// controller to which its agent is connected.
func mergeOverview(all [][]byte) (any, error) {
	var out api.Overview
	for n, text := range all {
		var o api.Overview
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, err
		}
		if n == 0 {
			out = o
			continue
		}
		out.Connected, out.Groups, out.AtRisk = out.Connected+o.Connected, out.Groups+o.Groups, out.AtRisk+o.AtRisk
		out.Risks = append(out.Risks, o.Risks...)
		out.Busiest = append(out.Busiest, o.Busiest...)
		for _, h := range o.Items {
			if i := slices.IndexFunc(out.Items, func(mine api.HostRates) bool { return mine.Host == h.Host }); i >= 0 && h.Connected {
				out.Items[i] = h
			}
		}
	}
	slices.SortStableFunc(out.Risks, func(a, b api.GroupAtRisk) int { return cmp.Compare(a.Host, b.Host) })
	slices.SortStableFunc(out.Busiest, func(a, b api.HostRates) int { return cmp.Compare(utilization(b), utilization(a)) })
	out.Risks = out.Risks[:min(len(out.Risks), server.MaxRisks)]
	out.Busiest = out.Busiest[:min(len(out.Busiest), server.MaxBusiest)]
	return out, nil
}

// utilization returns the highest utilization of a host's directions.
func utilization(h api.HostRates) (most float64) {
	for _, d := range h.Directions {
		if d.LimitBps != nil {
			most = max(most, server.Load{Limit: unit.Rate(*d.LimitBps), Delivered: unit.Rate(d.DeliveredBps)}.Utilization())
		}
	}
	return most
}
