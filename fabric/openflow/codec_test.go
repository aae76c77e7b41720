package openflow_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

// drawn is a source of values that a property test draws, and shrinks.
type drawn struct{ *rapid.T }

func (d drawn) Int(low, high int) int { return rapid.IntRange(low, high).Draw(d.T, "n") }

// What is encoded is decoded to the same message, and that is encoded to the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, k := range judge.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := k.Draw(judge.Gen{Source: drawn{t}})
				xid := rapid.Uint32().Draw(t, "xid")
				b, err := openflow.Append([]byte("before"), xid, m)
				if err != nil {
					t.Fatal(err)
				}
				b = b[len("before"):]
				gotXID, got, err := openflow.Decode(b)
				if err != nil {
					t.Fatalf("%v\n%x\n%v", err, b, m)
				}
				if gotXID != xid || !reflect.DeepEqual(got, m) {
					t.Fatalf("decoded %#v\nwant %#v", got, m)
				}
				again, err := openflow.Append(nil, xid, got)
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
