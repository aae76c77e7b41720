package openflow_test

import (
	"fmt"
	"net/netip"

	"headgate.dev/headgate/fabric/openflow"
)

// A flow sends packets to 10.1.0.0/16 through meter 7 and to port 2.
func Example() {
	add := &openflow.FlowMod{
		Command:  openflow.FlowAdd,
		Priority: 100,
		Buffer:   openflow.NoBuffer,
		OutPort:  openflow.PortAny,
		OutGroup: openflow.GroupAny,
		Match: openflow.Match{
			openflow.EthType(0x0800),
			openflow.IPv4Dst(netip.MustParsePrefix("10.1.0.0/16")),
		},
		Instructions: openflow.Instructions{
			openflow.Meter{Meter: 7},
			openflow.ApplyActions{Actions: openflow.Actions{openflow.Output{Port: 2}}},
		},
	}
	if err := add.Match.Check(); err != nil {
		fmt.Println(err)
	}
	wire, err := openflow.Append(nil, 1, add)
	if err != nil {
		fmt.Println(err)
	}
	xid, m, err := openflow.Decode(wire)
	fmt.Println(xid, m, err)
	// Output: 1 flow-mod ADD priority=100,ip,nw_dst=10.1.0.0/16 actions=meter:7,output:2 <nil>
}

func ExampleMatch_Check() {
	m := openflow.Match{openflow.TCPDst(80)}
	fmt.Println(m.Check())
	// Output: match: tcp_dst needs eth_type 0x0800 or 0x86dd: add it
}
