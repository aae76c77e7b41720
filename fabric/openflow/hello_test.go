package openflow

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestNegotiate(t *testing.T) {
	plain := func(v uint8) *Hello { return &Hello{Version: v} }
	for _, c := range []struct {
		a, b *Hello
		want uint8 // 0: none
	}{
		{NewHello(4), NewHello(1, 4, 5, 6), 4},
		{NewHello(1, 4, 6), NewHello(1, 4, 5), 4},
		{NewHello(4), plain(6), 4},
		{NewHello(4), plain(4), 4},
		{NewHello(4), plain(3), 0},
		{NewHello(4), NewHello(1, 5), 0},
		{NewHello(1, 4), plain(2), 0},
		{plain(4), plain(1), 1},
		{plain(0), plain(4), 0},
		{NewHello(4, 40), NewHello(40, 1), 40},
		{&Hello{Version: 4, Elements: []HelloElement{{Kind: 9}, {Kind: HelloVersions}}}, NewHello(4), 4},
	} {
		for _, order := range [][2]*Hello{{c.a, c.b}, {c.b, c.a}} {
			got, err := Negotiate(order[0], order[1])
			if got != c.want || (err == nil) != (c.want > 0) {
				t.Errorf("%v with %v: %d, %v, want %d", order[0], order[1], got, err, c.want)
			}
		}
	}
	_, err := Negotiate(NewHello(4), plain(1))
	if want := "cannot negotiate an OpenFlow version: one side supports version bitmap: 0x04, the other versions up to 0x01"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The version is the highest that is in both lists.
func TestNegotiateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []uint8 {
			return rapid.SliceOfNDistinct(rapid.Uint8Range(1, 255), 1, 6, rapid.ID).Draw(t, name)
		}
		a, b := draw("a"), draw("b")
		want := uint8(0)
		for _, v := range a {
			for _, w := range b {
				if v == w {
					want = max(want, v)
				}
			}
		}
		got, err := Negotiate(NewHello(a...), NewHello(b...))
		if got != want || (err == nil) != (want > 0) {
			t.Fatalf("%d, %v, want %d", got, err, want)
		}
	})
}

// A Hello of each version is decoded, and other messages only of version 4.
func TestVersions(t *testing.T) {
	for _, v := range []byte{1, 4, 5, 6, 255} {
		_, m, err := Decode([]byte{v, 0, 0, 8, 0, 0, 0, 1})
		if h, ok := m.(*Hello); !ok || h.Version != v {
			t.Errorf("version %d: %v, %v", v, m, err)
		}
		if _, m, err = Decode([]byte{v, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0}); err != nil || m.(*Error).Name() != "OFPHFC_INCOMPATIBLE" {
			t.Errorf("version %d: %v, %v", v, m, err)
		}
		if _, _, err = Decode([]byte{v, 20, 0, 8, 0, 0, 0, 1}); (err == nil) != (v == Version) {
			t.Errorf("version %d: error %v", v, err)
		}
	}
}

func ExampleNegotiate() {
	ours := NewHello(Version)
	theirs := NewHello(1, 4, 6) // OpenFlow 1.0, 1.3 and 1.5
	fmt.Println(Negotiate(ours, theirs))
	// Output: 4 <nil>
}
