package server

import (
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
)

// A reservation that relay agents carry is shown as it was asked for, with the names of the agents, and what is shown can be sent again.
func TestCarriedReservation(t *testing.T) {
	host := func(name string) reserve.Endpoint { return reserve.Endpoint{Kind: reserve.Host, Name: name} }
	r := reserve.Reservation{Request: reserve.Request{
		ID: reserve.ID{Name: "copy"}, Source: host("10.0.0.2"), Destination: host("10.0.0.3"), Flows: []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 8424, Last: 8424}}}, Class: 4,
		Carried: &reserve.Carried{Source: host("client"), Destination: host("server"), Flows: []reserve.Flow{{Protocol: 6}}, Near: "a", Far: "b"},
	}}
	out, err := reservationOf(store.DocumentOf(r, time.Time{}, time.Time{}), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	q := out.Request
	if *q.From.Host != "client" || *q.To.Host != "server" || (*q.Flows)[0].DestinationPorts != nil || *q.Carry != api.CarryByRelay || *out.Relays != (api.ReservationRelays{Near: "a", Far: "b"}) {
		t.Errorf("shown as %+v", out)
	}
	again, err := requestFrom(r.Request.ID, q)
	if err != nil || again.Carried == nil || again.Source.Name != "client" || again.Flows[0] != (reserve.Flow{Protocol: 6}) {
		t.Errorf("sent again as %+v, %v", again, err)
	}
	if plain := ReservationForm(reserve.Request{Source: host("client"), Destination: host("server")}); plain.Carry != nil {
		t.Error("a request without carry has it")
	}
}
