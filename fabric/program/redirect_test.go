package program

import (
	"net/netip"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// redirection is of a client at switch 1, a near agent at 2, a far one at 3, and a server at 4.
func redirection(client, server string) Redirection {
	host := func(n byte) fabric.Host {
		return fabric.Host{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, n}}, At: fabric.PortID{Switch: fabric.DPID(n), Port: 1}}
	}
	return Redirection{Client: netip.MustParseAddrPort(client), Server: netip.MustParseAddrPort(server), From: host(1), Near: host(2), Far: host(3), To: host(4), Beyond: host(4)}
}

// The flows of redirection are rules of the pipeline, can be sent, and are in no program: a comparison with one leaves them as they are.
func TestRedirectionFlows(t *testing.T) {
	for _, r := range []Redirection{redirection("10.0.0.1:40000", "10.0.0.4:80"), redirection("[fd00::1]:40000", "[fd00::4]:80")} {
		all := Watch([]NewConnections{
			{Destination: netip.PrefixFrom(r.Server.Addr(), 0)}, {Source: netip.PrefixFrom(r.Client.Addr(), 16), Destination: netip.PrefixFrom(r.Server.Addr(), 16), Ports: Ports{5000, 5002}},
		}, 1)
		all = append(all, Bypass(3, false, 10), Bypass(3, true, 10))
		for n, side := range []map[fabric.DPID][]Flow{r.NearFlows(), r.FarFlows(), r.ResetFlows()} {
			at := [][2]fabric.DPID{{1, 2}, {3, 4}, {1, 4}}[n]
			if len(side) != 2 || len(side[at[0]]) != 1 || len(side[at[1]]) != 1 {
				t.Errorf("%v: flows at %v, want one at switches %v", r.Client, side, at)
			}
			for _, flows := range side {
				all = append(all, flows...)
			}
		}
		var have State
		for _, f := range all {
			kind, _ := KindOf(f.Cookie)
			if _, rule, ok := RuleOf(f.Table, f.Cookie); !ok || rule.Kind != kind || rule.Priority != f.Priority {
				t.Errorf("a flow to %s is of the rule %+v", f.Why, rule)
			}
			if f.HardTimeout == 0 && f.IdleTimeout == 0 {
				t.Errorf("a flow to %s never ends", f.Why)
			}
			if err := f.Match.Check(); err != nil && f.Match[0].ID() != openflow.FieldTCPDst && kind != KindWatch { // masks of ports are Open vSwitch's
				t.Errorf("%s: %v", f.Why, err)
			}
			for _, m := range []openflow.Message{f.Mod(), f.Delete()} {
				if _, err := openflow.Append(nil, 1, m); err != nil {
					t.Errorf("%s: %v", f.Why, err)
				}
			}
			have.Flows = append(have.Flows, openflow.FlowStats{Table: f.Table, Priority: f.Priority, Match: f.Match, Cookie: f.Cookie, Instructions: f.Instructions})
		}
		plan, err := Diff(Program{}, have, Managed)
		if err != nil || len(plan.Steps) > 0 {
			t.Errorf("a program without them deletes %v, %v", plan.Steps, err)
		}
		if got, want := ClientOf(r.NearFlows()[1][0].Match), (fabric.Connection{Client: r.Client, Server: r.Server}); got != want {
			t.Errorf("the connection of the client's flow is %v, want %v", got, want)
		}
	}
}
