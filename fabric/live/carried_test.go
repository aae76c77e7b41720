package live

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/redirect"
)

// The connections of a reservation are redirected while it lasts, though the network's file has no rule, and only between its ends and over its agents.
func TestCarried(t *testing.T) {
	for _, six := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelays(t, fabric.Relays{Agents: bulk.Agents})
			prefix := func(a netip.AddrPort) []netip.Prefix {
				return []netip.Prefix{netip.PrefixFrom(a.Addr(), a.Addr().BitLen())}
			}
			client, server := at(r.client, six, 40000), at(r.server, six, 5001)
			hosts := r.live.Status().Hosts
			near, far := r.near.Addr(false), r.far.Addr(false)
			byAddress := redirect.Rule{Redirect: fabric.Redirect{From: prefix(client), To: prefix(server), Ports: []fabric.PortRange{{First: 5001, Last: 5001}}}, Near: near, Far: far}
			byPort := redirect.Rule{ClientsAt: hosts[0].At, ServersAt: hosts[3].At, Near: near, Far: far}
			elsewhere, others := byPort, byAddress
			elsewhere.ClientsAt = hosts[3].At
			others.Near, others.Far = far, near
			for _, step := range []struct {
				name  string
				rules []redirect.Rule
				port  uint16
				taken bool
			}{
				{"before", nil, 5001, false},
				{"by address", []redirect.Rule{byAddress}, 5001, true},
				{"another port", []redirect.Rule{byAddress}, 5002, false},
				{"by port of the network", []redirect.Rule{byPort}, 5002, true},
				{"clients elsewhere", []redirect.Rule{elsewhere}, 5001, false},
				{"other agents", []redirect.Rule{others}, 5001, false},
				{"other agents first", []redirect.Rule{others, byAddress}, 5001, true},
				{"after", nil, 5001, false},
			} {
				r.live.SetCarried(step.rules)
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				want := r.server
				if step.taken {
					want = r.near
				}
				client = netip.AddrPortFrom(client.Addr(), client.Port()+1)
				if to, _, _ := r.sends(r.client, macOf(r.server), macOf(r.client), client, netip.AddrPortFrom(server.Addr(), step.port), flagSYN); to != want {
					t.Errorf("%s: the first segment was received by %v, want %s", step.name, to, want.Name())
				}
				if s := r.live.Status(); s.Redirects != (step.rules != nil) {
					t.Errorf("%s: the status has redirections: %v", step.name, s.Redirects)
				}
			}
			pair, why := r.live.Pair(fabric.Connection{Client: client, Server: server}, redirect.Ends{Client: hosts[0], Beyond: hosts[3], Server: hosts[3]})
			if why != "" || pair.Near.Host.HostID != hosts[1].HostID || pair.Far.Host.HostID != hosts[2].HostID {
				t.Errorf("the agents are %+v, %s", pair, why)
			}
		})
	}
}
