package traffic

// snapshot has a flow's counts at one time.
type snapshot struct {
	at             int64 // ns since the start
	sent, received counts
	offered        float64
	tcp            connState
	missing        uint32 // segments that have not arrived yet
}

func (f *flow) snapshot(now int64) snapshot {
	if f.app != nil {
		return f.snapshotApp(now)
	}
	var state connState
	missing := f.last.missing
	if f.Protocol == TCP {
		// A broken connection has no state: then its counts do not change. The receiver's is read
		// first, so that no missing segment is overlooked.
		there, _ := stateOf(f.recv, f.MPTCP)
		var err error
		if state, err = stateOf(f.send, f.MPTCP); err == nil {
			missing = state.dataOut - there.dataIn
		}
		state.retransmits = max(state.retransmits, f.last.tcp.retransmits)
		state.deliveredCE = max(state.deliveredCE, f.last.tcp.deliveredCE)
		state.duplicates = max(state.duplicates, f.last.tcp.duplicates)
	}
	f.agreed.subflows = max(f.agreed.subflows, state.subflows)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pacer.update(now)
	return snapshot{now, f.sent, f.received, f.pacer.offered + f.sent.unlimited, state, missing}
}

// snapshotApp sums the flow's connections, including closed ones.
func (f *flow) snapshotApp(now int64) snapshot {
	s := snapshot{at: now, sent: f.sent, received: f.received, tcp: f.closed}
	var srtt, main uint64
	for c := range f.conns {
		state, err := stateOf(c.fd, f.MPTCP)
		if err != nil {
			continue
		}
		s.tcp.retransmits += state.retransmits
		s.tcp.deliveredCE += state.deliveredCE
		f.agreed.subflows = max(f.agreed.subflows, state.subflows)
		if c.main {
			s.tcp.cwnd += state.cwnd
			srtt += uint64(state.srtt)
			main++
		}
	}
	s.tcp.srtt = uint32(srtt / max(main, 1))
	// The counts of a connection without a state, or of a lost subflow, are missing.
	s.tcp.retransmits = max(s.tcp.retransmits, f.last.tcp.retransmits)
	s.tcp.deliveredCE = max(s.tcp.deliveredCE, f.last.tcp.deliveredCE)
	s.offered = f.layer2(s.sent.bytes)
	return s
}

// layer2 returns the bits of full frames that carry so many bytes.
func (f *flow) layer2(bytes uint64) float64 {
	if f.payload == 0 { // no connection yet
		return 0
	}
	return float64(bytes) * 8 * float64(f.frame) / float64(f.payload)
}

// lost returns the number of datagrams missing before the last that arrived.
func (c counts) lost() uint64 { return c.next - min(c.datagrams, c.next) }

// sample closes an interval.
func (f *flow) sample(now int64) Interval {
	s, last := f.snapshot(now), f.last
	f.last = s
	delivered := s.received.bytes - last.received.bytes
	iv := Interval{
		StartSeconds: float64(last.at) / 1e9, Seconds: float64(now-last.at) / 1e9,
		OfferedL2Bits:  s.offered - last.offered,
		SentBytes:      s.sent.bytes - last.sent.bytes,
		DeliveredBytes: delivered, DeliveredL2Bits: f.layer2(delivered),
		Retransmits: s.tcp.retransmits - last.tcp.retransmits,
		DeliveredCE: s.tcp.deliveredCE - last.tcp.deliveredCE + s.received.ce - last.received.ce,
		Duplicates:  s.tcp.duplicates - last.tcp.duplicates, MissingSegments: s.missing,
		Datagrams: s.sent.datagrams - last.sent.datagrams,
		JitterUs:  s.received.jitter.us(),
		SRTTus:    s.tcp.srtt, CwndSegments: s.tcp.cwnd,
	}
	// A reordered datagram may reduce the losses counted before.
	if now, before := s.received.lost(), last.received.lost(); now > before {
		iv.LostDatagrams = now - before
	}
	if f.app != nil {
		f.app.interval(&iv)
	}
	f.result = append(f.result, iv)
	return iv
}
