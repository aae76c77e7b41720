package openflow_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

// decodeAny decodes bytes, which may be no message. A message is encoded to bytes that decode to the same message,
// and all of it has a text.
func decodeAny(t interface{ Fatalf(string, ...any) }, b []byte) openflow.Message {
	xid, m, err := openflow.Decode(b)
	if err != nil {
		if m != nil || err.Error() == "" {
			t.Fatalf("%v with an error %v", m, err)
		}
		return nil
	}
	again, err := openflow.Append(nil, xid, m)
	if err != nil {
		t.Fatalf("decoded, but not encoded: %v\n%x\n%#v", err, b, m)
	}
	if len(again) > len(b) {
		t.Fatalf("%d bytes become %d\n%x\n%x", len(b), len(again), b, again)
	}
	_, same, err := openflow.Decode(again)
	if err != nil || !reflect.DeepEqual(same, m) {
		t.Fatalf("decoded again: %v\n%#v\nwant\n%#v", err, same, m)
	}
	_ = m.String()
	return m
}

func FuzzDecode(f *testing.F) {
	for _, k := range judge.Kinds {
		for _, m := range judge.Corpus(k, 2, true) {
			b, err := openflow.Append(nil, 1, m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { decodeAny(t, b) })
}

// FuzzReassembler adds the parts of a stream of messages.
func FuzzReassembler(f *testing.F) {
	for _, k := range judge.Kinds {
		var stream []byte
		for i, m := range judge.Corpus(k, 3, true) {
			if r, ok := m.(*openflow.MultipartReply); ok {
				r.More = i < 2
				stream, _ = openflow.Append(stream, 7, r)
			}
		}
		if stream != nil {
			f.Add(stream)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := openflow.Reassembler{Limit: 4096}
		for len(stream) > 0 {
			n, err := openflow.Length(stream)
			if err != nil || n > len(stream) {
				return
			}
			xid, m, err := openflow.Decode(stream[:n])
			stream = stream[n:]
			part, ok := m.(*openflow.MultipartReply)
			if err != nil || !ok {
				continue
			}
			whole, err := r.Add(xid, part, n)
			if whole != nil && err != nil {
				t.Fatalf("both a reply and %v", err)
			}
			if whole != nil && whole.More {
				t.Fatal("the whole reply has more parts")
			}
			replies, bytes := r.Pending()
			if bytes > 4096 || replies > bytes/256 || replies == 0 && bytes != 0 {
				t.Fatalf("%d replies wait, of %d bytes", replies, bytes)
			}
		}
	})
}

// Messages with changed, missing and further bytes are decoded or refused.
func TestChanged(t *testing.T) {
	for _, k := range judge.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b, err := openflow.Append(nil, 1, k.Draw(judge.Gen{Source: drawn{t}}))
				if err != nil {
					t.Fatal(err)
				}
				for range rapid.IntRange(0, 3).Draw(t, "changes") {
					b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
				}
				switch rapid.IntRange(0, 2).Draw(t, "length") {
				case 1:
					b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]
				case 2:
					b = append(b, bytes.Repeat([]byte{0}, rapid.IntRange(1, 9).Draw(t, "more"))...)
				}
				if len(b) >= 4 && rapid.Bool().Draw(t, "right length") {
					b[2], b[3] = byte(len(b)>>8), byte(len(b))
				}
				decodeAny(t, b)
			})
		})
	}
}
