package cli

import (
	"fmt"
	"io"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
)

// networkRelays are the relay agents of a network, and what became of the connections that it redirects.
type networkRelays struct {
	Agents      []api.NetworkRelay      `json:"agents"`
	Redirection *api.NetworkRedirection `json:"redirection,omitempty"`
}

func relaysInNetwork(n api.Network) networkRelays {
	r := networkRelays{Agents: []api.NetworkRelay{}, Redirection: n.Redirection}
	if n.Relays != nil {
		r.Agents = *n.Relays
	}
	return r
}

func writeRelays(w io.Writer, r networkRelays, names switchNames) error {
	yes := map[bool]string{true: "yes", false: "no"}
	rows := [][]string{{"RELAY", "HOST", "AT", "TAKES", "CONNECTS", "EXITS"}}
	for _, a := range r.Agents {
		var exits []string
		for _, e := range a.Exits {
			exits = append(exits, e.Address+" ("+strings.Join(e.Destinations, " ")+")")
		}
		rows = append(rows, []string{a.Name, a.Mac, names.port(a.At), yes[a.Takes], yes[a.Connects], strings.Join(exits, ", ")})
	}
	if err := text.Table(w, "", rows); err != nil || r.Redirection == nil {
		return err
	}
	c := r.Redirection
	_, err := fmt.Fprintf(w, "%d connections are relayed. Of %d that were asked about, %d were redirected and %d went direct, %d of them because a switch did not take the flows. Ports that began too many went direct %d times.\n",
		c.Connections, c.Asked, c.Redirected, c.Direct, c.Failed, c.Bypassed)
	return err
}
