package relaylldp

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

var device = [6]byte{2, 0, 0, 0, 0, 7}

func end(n int) netip.AddrPort {
	return netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:%d", n, 5000+n))
}

// full is an announcement that does not fit into a frame, but each part of it does.
func full() Announcement {
	a := Announcement{Name: "relay1", Takes: true, Connects: true, Leaving: true}
	for n := range maxExits {
		e := Exit{Address: netip.MustParseAddr("2001:db8::1"), Ports: []uint16{8424, uint16(n)}}
		for i := range 3 {
			e.Destinations = append(e.Destinations, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", i)), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("0.0.0.0/0"))
		}
		a.Exits = append(a.Exits, e)
	}
	for n := range MaxEnded {
		a.Ended = append(a.Ended, Connection{end(n), end(n + 100)})
	}
	return a
}

// An announcement of any content that fits is read as it was written.
func TestAnnouncement(t *testing.T) {
	small := full()
	small.Exits = nil
	for name, a := range map[string]Announcement{"only a name": {Name: "a"}, "exits": {Name: "b", Exits: full().Exits[:4]}, "ended": small} {
		frame, err := a.Frame(device)
		if err != nil || len(frame) > 1514 {
			t.Fatalf("%s: a frame of %d bytes, %v", name, len(frame), err)
		}
		got, ok, err := Read(frame)
		if !ok || err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%s: read %+v, %v, %v, want %+v", name, got, ok, err, a)
		}
	}
}

func TestAnnouncementTooLarge(t *testing.T) {
	for _, a := range []Announcement{{}, {Name: "two words"}, {Name: strings.Repeat("a", 64)}, {Name: "a", Exits: make([]Exit, 9)}, {Name: "a", Exits: []Exit{{Address: end(1).Addr(), Ports: make([]uint16, 9)}}}, {Name: "a", Ended: make([]Connection, 21)}, {Name: "a", Exits: []Exit{{Destinations: make([]netip.Prefix, 28)}}}, full()} {
		if _, err := a.Frame(device); err == nil {
			t.Errorf("%+v has a frame", a)
		}
	}
}

// LLDP of others and frames of other types are no announcements.
func TestNoAnnouncement(t *testing.T) {
	if _, ok, err := Read(appendTLV(append(make([]byte, 12), 0x88, 0xcc), tlvEnd, nil)); ok || err != nil {
		t.Errorf("LLDP of another is an announcement, or an error: %v", err)
	}
	frame, _ := Announcement{Name: "a", Exits: []Exit{{Address: end(1).Addr()}}}.Frame(device)
	other := append([]byte{}, frame...)
	other[12] = 8
	if _, ok, _ := Read(other); ok {
		t.Error("a frame of another type is an announcement")
	}
}

// FuzzRead: no frame makes Read fail otherwise than with an error, and what it reads can be written and read again.
func FuzzRead(f *testing.F) {
	for _, a := range []Announcement{{Name: "a"}, {Name: "b", Takes: true, Exits: []Exit{{end(1).Addr(), []uint16{8424}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}, Ended: []Connection{{end(1), end(2)}}}} {
		frame, err := a.Frame(device)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		a, ok, err := Read(frame)
		if !ok || err != nil {
			return
		}
		if len(frame) > maxFrame-100 { // it may have had no chassis id, port id and TTL
			return
		}
		again, err := a.Frame(device)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", a, err)
		}
		if b, ok, err := Read(again); !ok || err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%+v was read, and %+v again: %v, %v", a, b, ok, err)
		}
	})
}
