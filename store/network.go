package store

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// NetworkConfigKey is the key of the configuration of the network of switches.
var NetworkConfigKey = Key(Network, "config")

// NetworkConfig is the configuration of the network of switches.
type NetworkConfig struct {
	// Text is one document of kind: Network, as config.FormatNetwork prints it.
	Text string `json:"text"`
}

// WeakLinksKey is the key of what measurements between hosts have shown of the links of the network.
var WeakLinksKey = Key(Network, "weak")

// WeakLinks are the links that give less than their capacity.
type WeakLinks struct {
	Links []WeakLink `json:"links"`
}

// WeakLink is a link that gives less than its capacity, or several of which one does.
type WeakLink struct {
	Links []LinkName `json:"suspects"`
	// Rate is what it gives, and Capacity what is configured or reported of the one with the least.
	Rate     unit.Rate `json:"rate"`
	Capacity unit.Rate `json:"capacity"`
	// From and To are the hosts between which it was measured, At.
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"`
}

// LinkName is the name of a link, or of the line of a host, of which one end is zero.
type LinkName struct {
	FromSwitch uint64 `json:"from_switch,omitempty"`
	FromPort   uint32 `json:"from_port,omitempty"`
	ToSwitch   uint64 `json:"to_switch,omitempty"`
	ToPort     uint32 `json:"to_port,omitempty"`
}

// NameOf returns the name of a link.
func NameOf(l fabric.LinkID) LinkName {
	return LinkName{uint64(l.From.Switch), uint32(l.From.Port), uint64(l.To.Switch), uint32(l.To.Port)}
}

// ID returns the link with a name.
func (n LinkName) ID() fabric.LinkID {
	return fabric.LinkID{From: fabric.PortID{Switch: fabric.DPID(n.FromSwitch), Port: fabric.PortNo(n.FromPort)}, To: fabric.PortID{Switch: fabric.DPID(n.ToSwitch), Port: fabric.PortNo(n.ToPort)}}
}
