package nl

import (
	"encoding/binary"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// FuzzParseObject checks that no message causes a panic in a parser.
func FuzzParseObject(f *testing.F) {
	var b Batch
	b.AddHTB(1, MakeHandle(0x4847, 0), Root, 2)
	b.SetHTBClass(1, MakeHandle(0x4847, 1), Root, HTBClass{Rate: 1 << 33, Ceil: 1 << 34, Buffer: 1, Cbuffer: 2})
	b.SetBPFFilter(1, ClsactEgress, 1, 3, "headgate")
	b.SetRedirectingFilter(1, ClsactIngress, 1, 3, "headgate", 2)
	for _, m := range b.msgs {
		f.Add(m.Data)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		o, err := ParseObject(message)
		if err != nil {
			return
		}
		o.BPFFilter()
		o.Pref()
		o.FQCodel()
		o.Leaf()
		_, _ = o.HTBDefault()
		if c, err := o.HTBClass(); err == nil && o.Options == nil && c != (HTBClass{}) {
			t.Errorf("a class without options is %+v", c)
		}
	})
}

// FuzzAcknowledgement checks that no response to a request causes a panic.
func FuzzAcknowledgement(f *testing.F) {
	refusal := make([]byte, 36)
	binary.NativeEndian.PutUint32(refusal, 36)
	binary.NativeEndian.PutUint16(refusal[4:], unix.NLMSG_ERROR)
	f.Add(uint16(0), refusal)
	f.Add(uint16(0x300), append(refusal, 8, 0, 1, 0, 'n', 'o', 0, 0))
	f.Fuzz(func(_ *testing.T, flags uint16, raw []byte) {
		message{kind: unix.NLMSG_ERROR, flags: netlink.HeaderFlags(flags), raw: raw}.ack()
	})
}
