package lab

// hop is a route to the network of segment Net: through the node's own end Via of a link, to the node
// at Gateway.
type hop struct {
	Net          int
	Via, Gateway end
}

// routes returns a node's routes to every network that it is not attached to, over the fewest networks.
// Of equally long paths it takes the one whose links come first in the file. Hosts do not forward, so
// paths run through routers only: each hop brings a packet closer to its destination, and there are no
// routing loops.
func (t *Topology) routes(node string, a *addressing) []hop {
	router := map[string]bool{}
	for _, n := range t.Nodes {
		router[n.Name] = n.Router
	}
	first := map[string]hop{node: {}} // the first hop of the path to a node
	reached := map[int]bool{}
	var out []hop
	queue := []string{node}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at != node && !router[at] {
			continue
		}
		for i, l := range t.Links {
			for e := range 2 {
				if l.Ends[e] != at {
					continue
				}
				net := a.of[i]
				if !reached[net] {
					reached[net] = true
					if at != node {
						out = append(out, hop{net, first[at].Via, first[at].Gateway})
					}
				}
				for _, there := range a.segments[net].ends {
					peer := t.Links[there.link].Ends[there.end]
					if _, ok := first[peer]; ok {
						continue
					}
					h := first[at]
					if at == node {
						h = hop{net, end{i, e}, there}
					}
					first[peer] = h
					queue = append(queue, peer)
				}
			}
		}
	}
	return out
}
