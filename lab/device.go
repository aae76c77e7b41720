package lab

import (
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/unit"
)

// devices returns the names of each link's two devices. A node's device has the name of the node or
// switch at the other end; a second link between the same two has "-2" appended. See portDevices for
// the devices of switches, which share a namespace.
func (t *Topology) devices() [][2]string {
	out := make([][2]string, len(t.Links))
	used := map[[2]string]int{}
	is, ports := t.isSwitch(), t.portDevices()
	for i, l := range t.Links {
		for end := range 2 {
			own, peer := l.Ends[end], l.Ends[1-end]
			used[[2]string{own, peer}]++
			out[i][end] = peer
			if n := used[[2]string{own, peer}]; n > 1 {
				out[i][end] = fmt.Sprintf("%s-%d", peer, n)
			}
			if is(own) {
				out[i][end] = ports.next(own, out[i][end])
			}
		}
	}
	return out
}

// Device is one end of a link in a lab.
type Device struct {
	// Node is the name of the node or switch.
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Device    string `json:"device"`
	To        string `json:"to"`
	// IPv4 and IPv6 are the zero Prefix at a switch.
	IPv4 netip.Prefix `json:"ipv4"`
	IPv6 netip.Prefix `json:"ipv6"`
	// DatapathID and Port are the switch's id, as 16 hexadecimal digits, and the OpenFlow port number.
	DatapathID string `json:"datapath_id,omitempty"`
	Port       uint32 `json:"port,omitempty"`
	// Link is the name of the device's link, Backend its backend.
	Link    string  `json:"link"`
	Backend Backend `json:"backend"`
	// Rate and Delay apply to what the device sends; 0 is unlimited.
	Rate  unit.Rate     `json:"rate"`
	Delay time.Duration `json:"delay_ns"`
}

// Devices returns every device of the topology, link by link, without those of management links.
func (t *Topology) Devices() (out []Device) {
	names, links, backends, a := t.devices(), t.LinkNames(), t.Backends(), t.addressing()
	for i, l := range t.Links {
		for end, p := range [2]Path{l.Forward, l.Back} {
			out = append(out, Device{
				Node: l.Ends[end], Namespace: namespaceName(t.Name, l.Ends[end]), Device: names[i][end], To: l.Ends[1-end],
				IPv4: a.v4[i][end], IPv6: a.v6[i][end], Link: links[i], Backend: backends[i], Rate: p.Rate, Delay: p.Delay,
			})
		}
	}
	ports := t.ports()
	for i, s := range t.Switches {
		for _, p := range ports[s.Name] {
			d := &out[2*p.end.link+p.end.end]
			d.Namespace, d.DatapathID, d.Port = namespaceName(t.Name, switchesName), formatID(t.datapathID(i)), p.Number
		}
	}
	return out
}
