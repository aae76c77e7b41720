package openflow

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// What is encoded is decoded to the same message, and that is encoded to the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := k.draw(gen{T: t})
				xid := rapid.Uint32().Draw(t, "xid")
				b, err := Append([]byte("before"), xid, m)
				if err != nil {
					t.Fatal(err)
				}
				b = b[len("before"):]
				gotXID, got, err := Decode(b)
				if err != nil {
					t.Fatalf("%v\n%x\n%v", err, b, m)
				}
				if gotXID != xid || !reflect.DeepEqual(got, m) {
					t.Fatalf("decoded %#v\nwant %#v", got, m)
				}
				again, err := Append(nil, xid, got)
				if err != nil || !bytes.Equal(again, b) {
					t.Fatalf("encoded again: %v\n%x\nwant\n%x", err, again, b)
				}
				if m.String() == "" {
					t.Fatal("the text is empty")
				}
			})
		})
	}
}
