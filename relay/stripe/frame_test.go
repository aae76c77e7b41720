package stripe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func makeBytes(size int) []byte { return make([]byte, size) }

func anyFrame(t *rapid.T) Frame {
	f := Frame{
		Kind: Kind(rapid.IntRange(1, int(lastKind)).Draw(t, "kind")), Conn: rapid.Uint32().Draw(t, "conn"),
		Offset: rapid.Uint64Range(0, maxOffset).Draw(t, "offset"), Fin: rapid.Bool().Draw(t, "fin"),
	}
	if n := rapid.IntRange(0, 3000).Draw(t, "size"); n > 0 {
		f.Payload = bytes.Repeat([]byte{7}, n)
	}
	return f
}

// Frames that are written one after another are read the same, and a frame that is cut or changed is an error.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(anyFrame), 1, 5).Draw(t, "frames")
		var wire []byte
		last := 0
		for _, f := range all {
			last = len(wire)
			wire = append(AppendHeader(wire, f), f.Payload...)
		}
		r := bufio.NewReader(bytes.NewReader(wire))
		for _, f := range all {
			if got, err := ReadFrame(r, makeBytes); err != nil || !reflect.DeepEqual(got, f) {
				t.Fatalf("read %v, %v, want %v", got, err, f)
			}
		}
		if _, err := ReadFrame(r, makeBytes); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
		cut := rapid.IntRange(1, len(wire)-last-1).Draw(t, "cut")
		if _, err := ReadFrame(bufio.NewReader(bytes.NewReader(wire[last:last+cut])), makeBytes); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("a frame that is cut after %d bytes: %v", cut, err)
		}
		changed := bytes.Clone(wire[last:])
		changed[rapid.IntRange(0, len(changed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := ReadFrame(bufio.NewReader(bytes.NewReader(changed)), makeBytes); err == nil {
			t.Fatalf("a frame with a changed bit is read as %v", got)
		}
	})
}

func TestHeaderSize(t *testing.T) {
	f := Frame{Kind: Data, Conn: 100, Offset: 10_000_000_000, Payload: make([]byte, MaxPayload)}
	if n := len(AppendHeader(nil, f)); n > 15 {
		t.Errorf("the header of a chunk at 10 GB has %d bytes", n)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(append(AppendHeader(nil, Frame{Kind: Data, Conn: 1, Offset: 5, Payload: []byte("abc")}), "abc"...))
	f.Add([]byte{0x11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, wire []byte) {
		got, err := ReadFrame(bufio.NewReader(bytes.NewReader(wire)), makeBytes)
		if err != nil {
			if !errors.Is(err, ErrFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("error %v", err)
			}
			return
		}
		again, err := ReadFrame(bufio.NewReader(bytes.NewReader(append(AppendHeader(nil, got), got.Payload...))), makeBytes)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v is read again as %v, %v", got, again, err)
		}
	})
}
