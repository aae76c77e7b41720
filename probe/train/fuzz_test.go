package train

import (
	"bytes"
	"testing"
)

// FuzzParseHeader: a header is what Put writes, and nothing else.
func FuzzParseHeader(f *testing.F) {
	f.Add(Header{Kind: Proof, Session: 1, Train: 2, Packet: 3}.Bytes())
	f.Add([]byte("HGp"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, ok := ParseHeader(text)
		if ok && !bytes.Equal(h.Bytes(), text[:headerSize]) {
			t.Errorf("%x is read as %+v, which is %x", text, h, h.Bytes())
		}
		if ok && h.WithNonce(h.Nonce()) != h {
			t.Errorf("the nonce %x of %+v", h.Nonce(), h)
		}
	})
}
