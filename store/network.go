package store

import (
	"cmp"
	"time"

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
	Links []ReservationLink `json:"suspects"`
	// Likely is the one of several that alone would explain what was measured, nil if there is none.
	Likely *ReservationLink `json:"likely,omitempty"`
	// Rate is what it gives, and Capacity what is configured or reported of the one with the least.
	Rate     unit.Rate `json:"rate"`
	Capacity unit.Rate `json:"capacity"`
	// Arrived is what arrived at its end while more was sent, if that is less than Rate, and 0 if it is not.
	Arrived unit.Rate `json:"arrived,omitempty"`
	// From and To are the hosts between which it was measured, At.
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"`
}

// Gives returns what the link gives: what arrived, of which a counter is exact, before what was measured.
func (w WeakLink) Gives() unit.Rate { return cmp.Or(w.Arrived, w.Rate) }
