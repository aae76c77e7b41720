package groups

import (
	"fmt"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// dev is the server's device towards the router, which is limited.
const dev = "router"

// basePort is the destination port of the first group; the others follow.
const basePort = 5001

// seedShares are the guarantees of the paper's four groups.
var seedShares = []unit.Share{100_000, 200_000, 300_000, 400_000}

// groupName returns the name of the i-th group, with the paper's numbers.
func groupName(i int) string { return fmt.Sprintf("group%d", i) }

// ports returns a rule for one destination port, which every limiter supports.
func port(p uint16) []group.Selector {
	return []group.Selector{{DPort: []group.PortRange{{First: p, Last: p}}}}
}

// seedGroups are the paper's four. The default is the smallest, and gets only its own traffic.
func seedGroups(limit unit.Rate) group.Direction { return groupsOf(limit, seedShares) }

// groupsOf returns groups with these guarantees, with the rules of the paper's.
func groupsOf(limit unit.Rate, shares []unit.Share) group.Direction {
	d := group.Direction{Limit: limit}
	for i, s := range shares {
		d.Groups = append(d.Groups, group.Group{
			Name: groupName(i), Guarantee: group.Amount{Share: s}, Match: port(basePort + uint16(i)), Default: i == 0,
		})
	}
	return d
}

// plan limits one direction of the server's device.
func plan(d group.Direction, in bool) (shaper.Plan, error) {
	tree, problems := d.Resolve("out", true)
	if len(problems) > 0 {
		return shaper.Plan{}, fmt.Errorf("the benchmark's groups are invalid: %w", problems[0])
	}
	p := shaper.Plan{Dev: dev, Perspective: group.Host}
	if in {
		p.In = &tree
	} else {
		p.Out = &tree
	}
	return p, nil
}

// ends returns the sender and the receiver of data.
func ends(in bool) (from, to string) {
	if in {
		return "client", "server"
	}
	return "server", "client"
}

func direction(in bool) string {
	if in {
		return "in"
	}
	return "out"
}
