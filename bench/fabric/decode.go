package fabric

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/fabric/openflow"
)

// smallMessages are what switches send often, as bytes.
func smallMessages() (all [][]byte, err error) {
	for i, m := range []openflow.Message{
		&openflow.EchoRequest{Data: make([]byte, 8)},
		&openflow.PacketIn{Buffer: openflow.NoBuffer, TotalLen: 60, Reason: openflow.ReasonAction, Cookie: 1, Match: openflow.Match{openflow.InPort(3)}, Data: make([]byte, 60)},
		&openflow.PortStatus{Reason: openflow.PortModify, Port: openflow.Port{No: 3, HWAddr: openflow.MAC{2, 0, 0, 0, 0, 3}, Name: "eth3", State: openflow.PortLinkDown, CurrSpeed: 1e6}},
		&openflow.BarrierReply{},
		&openflow.FlowRemoved{Cookie: 1, Priority: 100, Table: 4, Packets: 2, Bytes: 120, Match: openflow.Match{openflow.EthType(0x0800), openflow.IPv4Dst(netip.MustParsePrefix("10.0.0.0/8"))}},
	} {
		b, err := openflow.Append(nil, uint32(i), m)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// decodeSpeed decodes small messages on one processor: garbage collection, too, has only that one.
func decodeSpeed(ctx context.Context, r *bench.Run) error {
	all, err := smallMessages()
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var rates []float64
	for range bench.Pick(r.Quick, 3, 10) {
		const batch = 200 * time.Millisecond
		n, began := 0, time.Now()
		for time.Since(began) < batch {
			for range 100 {
				for _, b := range all {
					if _, m, err := openflow.Decode(b); err != nil || m == nil {
						return errors.Join(err, errors.New("a message is not decoded"))
					}
				}
			}
			n += 100 * len(all)
		}
		rates = append(rates, float64(n)/time.Since(began).Seconds())
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	r.Sheet(bench.Ours).SetAll("codec/decode", rates)
	r.Sheet(bench.Ours).Note("codec/decode", "the median of %d samples", len(rates))
	return nil
}
