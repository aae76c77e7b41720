package wire

import "testing"

// TaggedSuper returns a super-packet of TCP within a VLAN, with its vnet header, and its segments as
// gopacket builds them, without the tag, which the receiving kernel removes, and with checksums that
// are still to be computed.
func TaggedSuper(t testing.TB) (b []byte, segments [][]byte) {
	s := super{tags: 1, options: true, seq: 1 << 31, id: 65_530, end: true, mss: 1000, payload: make([]byte, 9_500)}
	for i := range s.payload {
		s.payload[i] = byte(i * 7)
	}
	b = s.vnet(t)
	s.tags = 0
	for i := range s.segments() {
		segments = append(segments, s.pick(i, i+1).build(t, true))
	}
	return b, segments
}
