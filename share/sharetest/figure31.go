package sharetest

import (
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Figure31 has the four intervals of figure 3.1, in which QoS1, QoS2 and best effort share a link
// of 10 Gbit/s. What best effort offers in interval d is not in the text; it can use "the extra
// 2 Gbps" above its 6.
var Figure31 = []struct {
	Name    string
	Offered []unit.Rate
}{
	{"a", gbit(1, 2, 6)},
	{"b", gbit(1, 3.5, 6)},
	{"c", gbit(2.5, 3.5, 6)},
	{"d", gbit(4.5, 1.5, 8)},
}

// Figure31Network is the network of figure 3.1: one link, index 0.
func Figure31Network() share.ReservedNetwork {
	return share.ReservedNetwork{Capacities: []unit.Rate{10 * unit.Gbit}, Flows: []share.ReservedFlow{
		{Key: "QoS1", Links: []int{0}, Reserved: 1 * unit.Gbit, Class: 1},
		{Key: "QoS2", Links: []int{0}, Reserved: 2 * unit.Gbit, Class: 2},
		{Key: "BE", Links: []int{0}, Reserved: 7 * unit.Gbit, Class: share.BestEffort},
	}}
}

func gbit(rates ...float64) []unit.Rate {
	out := make([]unit.Rate, len(rates))
	for i, r := range rates {
		out[i] = unit.Rate(r * 1e9)
	}
	return out
}
