package reservations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
	"headgate.dev/headgate/unit"
)

// wide is a network of 200 switches and 800 cables of 10 Gbit/s, of which one can be cut.
func wide(cut int) *fabric.Topology {
	rnd := rand.New(rand.NewPCG(1, 2))
	var p fabric.Parts
	for i := range 200 {
		p.Switches = append(p.Switches, fabric.Switch{ID: fabric.DPID(i + 1), Ports: []fabric.Port{{No: 1, Speed: 100 * unit.Gbit}}})
	}
	for n := range 800 {
		i := n % 200
		j := (i + 1 + rnd.IntN(199)) % 200
		id := fabric.LinkID{}
		for end, at := range map[*fabric.PortID]int{&id.From: i, &id.To: j} {
			s := &p.Switches[at]
			port := fabric.Port{No: fabric.PortNo(len(s.Ports) + 1)}
			if n == cut {
				port.State = fabric.Down
			}
			s.Ports = append(s.Ports, port)
			*end = fabric.PortID{Switch: s.ID, Port: port.No}
		}
		for _, one := range []fabric.LinkID{id, id.Reverse()} {
			p.Links = append(p.Links, fabric.Link{LinkID: one, Capacity: 10 * unit.Gbit, Cost: 1})
		}
	}
	top, err := fabric.New(p)
	if err != nil {
		panic(err)
	}
	return top
}

// anywhere draws a request of some hours in a week between two ports of wide.
func anywhere(rnd *rand.Rand, name string) reserve.Request {
	end := func(i int) reserve.Endpoint {
		return reserve.Endpoint{Kind: reserve.VLAN, Name: "20", VLAN: 20, At: fabric.PortID{Switch: fabric.DPID(i + 1), Port: 1}}
	}
	i := rnd.IntN(200)
	return reserve.Request{
		ID: reserve.ID{Name: name}, Source: end(i), Destination: end((i + 1 + rnd.IntN(199)) % 200), Class: 1 + rnd.IntN(4), Forward: unit.Rate(50+rnd.IntN(200)) * unit.Mbit,
		Start: began.Add(time.Duration(rnd.IntN(7*24)) * time.Hour), Duration: time.Duration(1+rnd.IntN(12)) * time.Hour,
	}
}

// BenchmarkOwner measures an owner of 10,000 reservations on a real store: how long it takes to build the book, and the
// median and the 99th percentile of changes and what-ifs.
func BenchmarkOwner(b *testing.B) {
	s := storetest.Open(b, storetest.Start(b))
	rnd := rand.New(rand.NewPCG(3, 4))
	top := wide(-1)
	book, err := reserve.NewBook(top, reserve.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for n := range 10_000 { // what does not fit is left out, and counted
		_, _ = book.Admit(anywhere(rnd, fmt.Sprint("r", n)), began)
	}
	for some := range slices.Chunk(book.All(), 100) {
		if _, err := s.Do(b.Context(), "fill", func(tx *store.Tx) error {
			for _, r := range some {
				if err := tx.Put(store.ReservationKey(r.Request.ID), store.DocumentOf(r, began, began)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	now := func() time.Time { return began }
	ctx, cancel := context.WithCancel(b.Context())
	terms, ended := make(chan store.Term), make(chan struct{})
	go func() {
		defer close(ended)
		s.Lead(ctx, store.Candidate{Name: "c1"}, func(ctx context.Context, t store.Term) error {
			terms <- t
			<-ctx.Done()
			return nil
		})
	}()
	defer func() { cancel(); <-ended }()
	network := func() (*fabric.Topology, error) { return top, nil }
	opening := time.Now()
	o, err := reservations.Open(b.Context(), <-terms, network, now)
	if err != nil {
		b.Fatal(err)
	}
	opened, all := time.Since(opening), len(o.List())
	report := func(what string, took []time.Duration) {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/"+what+"-median")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/"+what+"-p99")
	}
	var creates, whatIfs []time.Duration
	for n := 0; b.Loop(); n++ {
		r := anywhere(rnd, fmt.Sprint("new", n))
		from := time.Now()
		_, _ = o.WhatIf(r, nil)
		whatIfs = append(whatIfs, time.Since(from))
		from = time.Now()
		_ = o.Do(b.Context(), func(d *reservations.Decision) error {
			_, err := d.Create(r, nil)
			return err
		})
		creates = append(creates, time.Since(from))
	}
	b.ReportMetric(float64(opened.Milliseconds()), "ms/open")
	b.ReportMetric(float64(all), "reservations")
	report("create", creates)
	report("what-if", whatIfs)
	top = wide(7)
	from := time.Now()
	if err := o.Follow(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(from).Milliseconds()), "ms/reroute")
}
