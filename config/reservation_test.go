package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/unit"
)

// TestReservation: every key is read.
func TestReservation(t *testing.T) {
	const file = "testdata/reservation.yaml"
	set, err := Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v.UTC()
	}
	prefix := netip.MustParsePrefix("10.2.0.0/16")
	want := []reserve.Request{
		{
			ID:     reserve.ID{Name: "video"},
			Source: reserve.Endpoint{Kind: reserve.Host, Name: "h1"}, Destination: reserve.Endpoint{Kind: reserve.Site, Name: "south"},
			Flows: []reserve.Flow{
				{Protocol: 17, Destination: reserve.Ports{First: 5001, Last: 5010}},
				{Protocol: 6, Source: reserve.Ports{First: 80, Last: 80}},
				{Protocol: 47},
			},
			Class: 2, Forward: 100 * unit.Mbit, Reverse: 10 * unit.Mbit,
			Start: at("2150-01-31T21:00:00Z"), Duration: 2 * time.Hour, Until: at("2150-02-01T06:00:00Z"),
			Paths: 2, Protected: true, OnDemand: true, Disjoint: fabric.BySwitch,
			AvoidNames: [][2]string{{"s1/3", "s2/eth4"}, {"0000000000000001/4", "r1/eth1"}},
		},
		{
			ID:     reserve.ID{Name: "archive"},
			Source: reserve.Endpoint{Kind: reserve.Host, Name: "10.1.0.1"}, Destination: reserve.Endpoint{Kind: reserve.Prefix, Name: "10.2.0.0/16", Prefix: prefix},
			Class: 4, Volume: 2 * 1e12, Until: at("2150-02-01T06:00:00Z"),
		},
		{
			ID:     reserve.ID{Name: "circuit"},
			Source: reserve.Endpoint{Kind: reserve.VLAN, Name: "7", VLAN: 7}, Destination: reserve.Endpoint{Kind: reserve.VLAN, Name: "7", VLAN: 7},
			Class: 1, Forward: unit.Gbit, Duration: time.Minute, Disjoint: fabric.ByLink,
		},
		{
			ID:     reserve.ID{Name: "copy"},
			Source: reserve.Endpoint{Kind: reserve.Host, Name: "h1"}, Destination: reserve.Endpoint{Kind: reserve.Prefix, Name: "10.2.0.0/16", Prefix: prefix},
			Flows: []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 5001, Last: 5001}}},
			Class: 4, Forward: 100 * unit.Mbit, Duration: 2 * time.Hour, Carried: &reserve.Carried{},
		},
	}
	var b strings.Builder
	for i, r := range set.Reservations {
		if !reflect.DeepEqual(r.Request, want[i]) || r.File != file {
			t.Errorf("%+v\nwant %+v", r, want[i])
		}
		b.WriteString("---\n")
		b.Write(PrintReservation(r.Request))
		checkReservation(t, r.Request)
	}
	if len(set.Reservations) != len(want) {
		t.Errorf("%d documents", len(set.Reservations))
	}
	if _, line, column := set.Reservations[0].Where("flows[1].sport"); line != 7 || column < 1 {
		t.Errorf("the source port of the second flow is at line %d, column %d", line, column)
	}
	golden.Compare(t, "testdata/reservation.txt", b.String())
}

// checkReservation: a reservation is formatted as a document that parses to the same reservation.
func checkReservation(t interface {
	Helper()
	Fatalf(string, ...any)
}, r reserve.Request) {
	t.Helper()
	text := string(PrintReservation(r))
	again, err := ParseReservation("formatted", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !reflect.DeepEqual(again, r) {
		t.Fatalf("%+v is formatted as\n%s, which parses as %+v", r, text, again)
	}
}

// TestParseReservation: a stored text parses after its times are past, and a text is one document.
func TestParseReservation(t *testing.T) {
	const text = "kind: Reservation\nname: r\nfrom: h1\nto: h2\nrate: 1Mbit\nstart: 2020-01-01T00:00:00Z\nfor: 1h\nuntil: 2020-01-02T00:00:00Z\n"
	if r, err := ParseReservation("store", text); err != nil || r.Name != "r" {
		t.Errorf("%v", err)
	}
	if _, err := Parse("file", []byte(text)); err == nil || !strings.Contains(err.Error(), "file:6: start: 2020-01-01T00:00:00Z is in the past: write a later time") {
		t.Errorf("%v", err)
	}
	if _, err := ParseReservation("store", text+"---\n"+strings.Replace(text, "name: r", "name: s", 1)); err == nil || err.Error() != "2 documents of kind: Reservation: write one" {
		t.Errorf("%v", err)
	}
	var mistakes Errors
	if _, err := ParseReservation("body", "kind: Reservation\nname: r\nfrom: h1\nto: h2\nrate: 0bit\nfor: 1h\n"); !errors.As(err, &mistakes) || mistakes[0].Line != 5 {
		t.Errorf("%v", err)
	}
}

// A window that begins now is compared with the clock.
func TestReservationWindow(t *testing.T) {
	text := func(until time.Duration) []byte {
		return fmt.Appendf(nil, "kind: Reservation\nname: r\nfrom: h1\nto: h2\nrate: 1Mbit\nfor: 2h\nuntil: %s\n", time.Now().Add(until).Format(time.RFC3339))
	}
	if _, err := Parse("-", text(3*time.Hour)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("-", text(time.Hour)); err == nil || !strings.Contains(err.Error(), "-:7: until: the window from") || !strings.Contains(err.Error(), "shorter than the duration of 2h0m0s") {
		t.Errorf("%v", err)
	}
}

// One mistake in a reservation is one error.
func TestReservationFollowing(t *testing.T) {
	keys := []string{
		"name: r", "from: 10.0.0.0/8", "to: 10.0.0.0/16", "rate: 1Mbit", "back: 1Mbit", "for: 2h", "start: 2150-01-01T00:00:00Z", "until: 2150-01-02T00:00:00Z", "class: 1",
		"flows: [{proto: tcp, dport: 80}, {proto: tcp, dport: 81}]", "paths: 2", "avoid: [[s1/1, s2/1]]",
	}
	for _, wrong := range []string{
		"name: -", "from: h h", "to: fd00::/8", "to: 10.0.0.0/8", "rate: 0bit", "rat: 1Mbit", "back: x", "for: 0s", "for: 36h", "fore: 2h", "start: x", "start: 2150-01-01T23:00:00Z", "until: 2149-01-01T00:00:00Z", "class: 5",
		"flows: [{proto: x, dport: 80}, {proto: tcp, dport: 81}]", "flows: [{proto: icmp, dport: 80}]", "flows: [{proto: tcp, dport: 80-90}, {proto: tcp, dport: 81}]", "flows: []", "flows: [{proto: tcp, dprot: 80}, {proto: tcp, dport: 81}]",
		"paths: 9", "avoid: [[s1/1]]", "avoid: [[s1/1, s2]]", "avoid: [s1/1]", "volume: 1GB",
	} {
		key, _, _ := strings.Cut(wrong, ":")
		lines := []string{"kind: Reservation"}
		for _, line := range keys {
			if name, _, _ := strings.Cut(line, ":"); name != key && !(key == "rat" && name == "rate") && !(key == "fore" && name == "for") && !(key == "volume" && (name == "back" || name == "for")) {
				lines = append(lines, line)
			}
		}
		_, err := Parse("-", []byte(strings.Join(append(lines, wrong), "\n")))
		var mistakes Errors
		if !errors.As(err, &mistakes) || len(mistakes) != 1 {
			t.Errorf("%s: %v, want one mistake", wrong, err)
		}
	}
}

// TestReservationRoundTrip: every valid request is formatted as a document that parses to the same request.
func TestReservationRoundTrip(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawReservation(t)
		if r.Check(time.Time{}) != nil || r.Source == r.Destination {
			t.Skip("not valid") // the generator draws flows that overlap, and short windows
		}
		valid++
		checkReservation(t, r)
	})
	if valid == 0 {
		t.Error("no reservation was valid: this test checks nothing")
	}
}

func drawReservation(t *rapid.T) reserve.Request {
	end := rapid.Custom(func(t *rapid.T) reserve.Endpoint {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return reserve.Endpoint{Kind: reserve.Host, Name: rapid.SampledFrom([]string{"h1", "null", "site", "10.0.0.1", "a.b-c_"}).Draw(t, "host")}
		case 1:
			return reserve.Endpoint{Kind: reserve.Site, Name: rapid.SampledFrom([]string{"north", "host", "7"}).Draw(t, "site")}
		case 2:
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 255).Draw(t, "address"))}), rapid.IntRange(0, 32).Draw(t, "length")).Masked()
			return reserve.Endpoint{Kind: reserve.Prefix, Name: p.String(), Prefix: p}
		}
		v := rapid.Uint16Range(1, program.MaxHostVLAN).Draw(t, "VLAN")
		return reserve.Endpoint{Kind: reserve.VLAN, Name: fmt.Sprint(v), VLAN: v}
	})
	ports := rapid.Custom(func(t *rapid.T) (p reserve.Ports) {
		if rapid.Bool().Draw(t, "with ports") {
			p.First = rapid.Uint16Range(1, 65535).Draw(t, "first")
			p.Last = rapid.Uint16Range(p.First, 65535).Draw(t, "last")
		}
		return p
	})
	r := reserve.Request{
		ID:     reserve.ID{Name: rapid.SampledFrom([]string{"r", "null", "1", "a.b-c_"}).Draw(t, "name")},
		Source: end.Draw(t, "from"), Destination: end.Draw(t, "to"),
		Class: rapid.IntRange(1, reserve.Classes).Draw(t, "class"), Paths: rapid.IntRange(0, reserve.MaxPaths).Draw(t, "paths"),
		Protected: rapid.Bool().Draw(t, "protected"), Disjoint: rapid.SampledFrom([]fabric.Disjointness{fabric.ByLink, fabric.BySwitch}).Draw(t, "disjoint"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "flows") {
		r.Flows = append(r.Flows, reserve.Flow{
			Protocol: rapid.SampledFrom([]uint8{0, 1, 6, 17, 33, 47, 58, 132, 255}).Draw(t, "protocol"), Source: ports.Draw(t, "sources"), Destination: ports.Draw(t, "destinations"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "avoid") {
		r.AvoidNames = append(r.AvoidNames, [2]string{rapid.SampledFrom([]string{"s1/1", "0000000000000001/LOCAL"}).Draw(t, "a"), rapid.SampledFrom([]string{"r1/eth1.7", "s2/ge-0/0/1", "s2/a#,"}).Draw(t, "b")})
	}
	moment := func(label string) time.Time {
		return time.Unix(rapid.Int64Range(4e9, 5e9).Draw(t, label), rapid.Int64Range(0, 999_999_999).Draw(t, label+" fraction")).UTC()
	}
	if rapid.Bool().Draw(t, "in advance") {
		r.Start = moment("start")
	}
	if rapid.Bool().Draw(t, "window") {
		r.Until = moment("until")
	}
	if rapid.Bool().Draw(t, "by volume") {
		r.Volume = unit.Bytes(rapid.Uint64Range(1, uint64(reserve.MaxVolume)).Draw(t, "volume"))
		return r
	}
	r.Forward = unit.Rate(rapid.Uint64Range(1, uint64(unit.MaxRate)).Draw(t, "rate"))
	r.Reverse = unit.Rate(rapid.Uint64Range(0, uint64(unit.MaxRate)).Draw(t, "back"))
	r.Duration = time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "duration"))
	return r
}
