package traffic

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// message is a control message as cmsg(3) lays it out.
func message(level, kind int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	binary.NativeEndian.PutUint32(b[8:], uint32(level))
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// Timestamp and CE are found at any position; truncated messages have neither.
func TestControl(t *testing.T) {
	stamp := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 3), 5)
	at := message(unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS, stamp)
	ce4 := message(unix.IPPROTO_IP, unix.IP_TOS, []byte{0x2b})
	ce6 := message(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, []byte{0x2b, 0, 0, 0})
	ect := message(unix.IPPROTO_IP, unix.IP_TOS, []byte{0x2a})
	for _, c := range []struct {
		name string
		oob  []byte
		at   int64
		ce   bool
	}{
		{"nothing", nil, 0, false},
		{"time", at, 3e9 + 5, false},
		{"time, then CE", append(append([]byte{}, at...), ce4...), 3e9 + 5, true},
		{"CE of IPv6, then time", append(append([]byte{}, ce6...), at...), 3e9 + 5, true},
		{"ECT(0)", ect, 0, false},
		{"cut off", at[:20], 0, false},
		{"a length of 0", make([]byte, 32), 0, false},
	} {
		if at, ce := control(c.oob); at != c.at || ce != c.ce {
			t.Errorf("%s: %d and %v, want %d and %v", c.name, at, ce, c.at, c.ce)
		}
	}
}
