package traffic

import "golang.org/x/sys/unix"

// snapshot is a flow's counts at one moment.
type snapshot struct {
	at             int64 // ns since the start
	sent, received counts
	retransmits    uint32
	deliveredCE    uint32
	srtt, cwnd     uint32
}

func (f *flow) snapshot(now int64) snapshot {
	var info *unix.TCPInfo
	if f.Protocol == TCP {
		info, _ = f.tcpInfo()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := snapshot{at: now, sent: f.sent, received: f.received}
	if info != nil {
		s.retransmits, s.deliveredCE, s.srtt, s.cwnd = info.Total_retrans, info.Delivered_ce, info.Rtt, info.Snd_cwnd
	}
	return s
}

// lost is how many datagrams are missing before the last that arrived.
func (c counts) lost() uint64 { return c.next - min(c.datagrams, c.next) }

// sample closes an interval.
func (f *flow) sample(now int64) Interval {
	s, last := f.snapshot(now), f.last
	f.last = s
	delivered := s.received.bytes - last.received.bytes
	f.mu.Lock()
	offered := f.offered(last.at, now)
	f.mu.Unlock()
	iv := Interval{
		StartSeconds: float64(last.at) / 1e9, Seconds: float64(now-last.at) / 1e9,
		OfferedL2Bits:  offered + s.sent.unlimited - last.sent.unlimited,
		SentBytes:      s.sent.bytes - last.sent.bytes,
		DeliveredBytes: delivered, DeliveredL2Bits: float64(delivered) * 8 * float64(f.frame) / float64(f.payload),
		Retransmits: uint64(s.retransmits - last.retransmits), DeliveredCE: uint64(s.deliveredCE - last.deliveredCE),
		Datagrams: s.sent.datagrams - last.sent.datagrams,
		SRTTus:    s.srtt, CwndSegments: s.cwnd,
	}
	// A reordered datagram may take a loss back that was counted before.
	if now, before := s.received.lost(), last.received.lost(); now > before {
		iv.LostDatagrams = now - before
	}
	f.result = append(f.result, iv)
	return iv
}
