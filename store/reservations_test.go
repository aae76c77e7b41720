package store

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// A reservation is the same after it was written as JSON and read: the book that is built from the store is the book
// that was written.
func TestReservationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReservation(t)
		created := drawTime(t, "created")
		text, err := json.Marshal(DocumentOf(r, created, created.Add(time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		var read Reservation
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		got, err := read.Granted()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r) || !read.Created.Equal(created) {
			t.Fatalf("read %+v\nwant %+v\n%s", got, r, text)
		}
	})
}

func drawTime(t *rapid.T, name string) time.Time {
	return time.Unix(0, rapid.Int64Range(1, 1<<61).Draw(t, name)).UTC()
}

func drawReservation(t *rapid.T) reserve.Reservation {
	port := func(name string) fabric.PortID {
		return fabric.PortID{Switch: fabric.DPID(rapid.Uint64Min(1).Draw(t, name)), Port: fabric.PortNo(rapid.Uint32Range(1, uint32(fabric.MaxPort)).Draw(t, name))}
	}
	rate := func(name string) unit.Rate { return unit.Rate(rapid.Uint64Max(uint64(unit.MaxRate)).Draw(t, name)) }
	links := func(name string, most int) (all fabric.Path) {
		for range rapid.IntRange(0, most).Draw(t, name) {
			all = append(all, fabric.LinkID{From: port(name), To: port(name)})
		}
		return all
	}
	end := func(name string) reserve.Endpoint {
		e := reserve.Endpoint{
			Kind: rapid.SampledFrom(endpointKinds).Draw(t, name), Name: rapid.StringN(1, 20, -1).Draw(t, name),
			VLAN: rapid.Uint16Range(0, 4094).Draw(t, name), At: port(name),
		}
		if rapid.Bool().Draw(t, name) {
			e.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 2, 3}), rapid.IntRange(0, 32).Draw(t, name))
		}
		return e
	}
	ports := func(name string) reserve.Ports {
		first := rapid.Uint16().Draw(t, name)
		if first == 0 {
			return reserve.Ports{}
		}
		return reserve.Ports{First: first, Last: rapid.Uint16Min(first).Draw(t, name)}
	}
	r := reserve.Reservation{
		Forward: rate("forward"), Reverse: rate("reverse"), Start: drawTime(t, "start"), End: drawTime(t, "end"), Since: drawTime(t, "since"),
		Degraded: rapid.SampledFrom([]string{"", "no path has bandwidth"}).Draw(t, "degraded"), Generation: rapid.Uint64().Draw(t, "generation"),
		Request: reserve.Request{
			ID:     reserve.ID{Tenant: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "tenant"), Name: "n"},
			Source: end("source"), Destination: end("destination"), Class: rapid.IntRange(1, 4).Draw(t, "class"), Forward: rate("asked"), Reverse: rate("asked back"),
			Duration: time.Duration(rapid.Int64Min(0).Draw(t, "duration")), Volume: unit.Bytes(rapid.Uint64Max(1e18).Draw(t, "volume")),
			Paths: rapid.IntRange(0, 8).Draw(t, "paths"), Protected: rapid.Bool().Draw(t, "protected"), Disjoint: rapid.SampledFrom([]fabric.Disjointness{fabric.ByLink, fabric.BySwitch}).Draw(t, "disjoint"),
			Avoid: links("avoid", 2),
		},
	}
	if rapid.Bool().Draw(t, "has a start") {
		r.Request.Start, r.Request.Until = drawTime(t, "asked start"), drawTime(t, "until")
	}
	for range rapid.IntRange(0, 2).Draw(t, "flows") {
		r.Request.Flows = append(r.Request.Flows, reserve.Flow{Protocol: rapid.Uint8().Draw(t, "protocol"), Source: ports("source ports"), Destination: ports("destination ports")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "number of paths") {
		r.Paths = append(r.Paths, reserve.Path{Links: links("path", 3), Forward: rate("part"), Reverse: rate("part back"), Spare: rapid.Bool().Draw(t, "spare")})
	}
	if rapid.Bool().Draw(t, "carried") {
		r.Request.Carried = &reserve.Carried{Source: end("client"), Destination: end("server"), Flows: []reserve.Flow{{Protocol: 6, Destination: ports("server ports")}}, Near: "near", Far: "far"}
	}
	return r
}

// The keys of an operator's and a tenant's reservations differ, and what a newer version wrote is refused, not misread.
func TestReservationKeys(t *testing.T) {
	if got := ReservationKey(reserve.ID{Name: "a/b"}); got != "/headgate/reservations/-/a%2Fb" {
		t.Error(got)
	}
	if got := ReservationKey(reserve.ID{Tenant: "shop", Name: "a"}); got != "/headgate/reservations/shop/a" {
		t.Error(got)
	}
	end := ReservationEnd{Kind: "host"}
	for want, d := range map[string]Reservation{
		`kind "planet"`:     {Name: "a", Request: ReservationRequest{From: ReservationEnd{Kind: "planet"}, To: end}},
		`disjoint: "orbit"`: {Name: "a", Request: ReservationRequest{From: end, To: end, Disjoint: "orbit"}},
	} {
		if _, err := d.Granted(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
