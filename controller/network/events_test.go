package network

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
)

// The time from when on all events are listed is that at which the term began, or that of the oldest event once one of the term is lost.
func TestEventsSince(t *testing.T) {
	var e events
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	check := func(what string, count int, oldest, since time.Time) {
		t.Helper()
		all, got := e.all()
		if len(all) != count || !got.Equal(since) || !all[0].Time.Equal(oldest) {
			t.Errorf("%s: %d events from %v on, all since %v; want %d, %v and %v", what, len(all), all[0].Time, got, count, oldest, since)
		}
	}
	for n := range 10 { // of an earlier term
		e.add(fabric.Event{Time: at(n - 100)})
	}
	e.begin(began)
	for n := range maxEvents - 10 {
		e.add(fabric.Event{Time: at(n)})
	}
	check("as many as are kept", maxEvents, at(-100), began)
	for n := range 10 {
		e.add(fabric.Event{Time: at(1000 + n)})
	}
	check("the earlier term is lost", maxEvents, at(0), began)
	e.add(fabric.Event{Time: at(2000)})
	check("an event of the term is lost", maxEvents, at(1), at(1))
	e.begin(at(3000))
	e.add(fabric.Event{Time: at(3001)})
	check("another term", maxEvents, at(2), at(3000))
}

// What repeats is one event with a count, until it has not happened for a while, or was pushed out of the list. Other events are not
// joined.
func TestEventsRepeat(t *testing.T) {
	var e events
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	claim := func(d time.Duration) {
		e.add(fabric.Event{Time: at(d), Kind: fabric.AddressClaimed, Text: "address 10.0.0.1 is claimed"})
	}
	for n := range 3 {
		claim(time.Duration(n) * time.Minute)
		e.add(fabric.Event{Time: at(time.Duration(n) * time.Minute), Kind: fabric.PortChanged, Text: "port 1 is down"})
	}
	claim(2*time.Minute + repeatMemory)
	all, _ := e.all()
	if len(all) != 5 || all[0].Count != 3 || !all[0].Time.Equal(began) || !all[0].Recent().Equal(at(2*time.Minute)) || all[1].Count != 0 || all[4].Count != 0 || !all[4].Recent().Equal(all[4].Time) {
		t.Errorf("the events are %+v", all)
	}
	for n := range maxEvents {
		e.add(fabric.Event{Time: at(13 * time.Minute), Kind: fabric.HostStayed, Text: fmt.Sprint(n)})
	}
	claim(13 * time.Minute)
	e.add(fabric.Event{Time: at(14 * time.Minute), Kind: fabric.HostStayed, Text: "1"})
	if all, _ := e.all(); len(all) != maxEvents || all[maxEvents-1].Kind != fabric.AddressClaimed || all[maxEvents-1].Count != 0 || all[0].Text != "1" || all[0].Count != 2 || len(e.last) != maxEvents {
		t.Errorf("the first is %+v, the last %+v, and %d can repeat", all[0], all[maxEvents-1], len(e.last))
	}
}

// A peer that is refused again and again has one event, also from other ports. Of many different ones at a time few have one.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		peer := func(host byte, port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IP{192, 0, 2, host}, Port: port} }
		for n := range 100 {
			s.refuse(peer(1, 1000+n), fmt.Errorf("%v is no switch", peer(1, 1000+n)))
			time.Sleep(8 * time.Second)
		}
		all, _ := s.Events()
		if len(all) != 1 || all[0].Count != 100 || !strings.Contains(all[0].Text, "192.0.2.1:1000 is no switch") {
			t.Errorf("the events are %+v", all)
		}
		for n := range 100 {
			s.refuse(peer(byte(2+n), 1), errors.New("no switch"))
		}
		if all, _ := s.Events(); len(all) != 1+maxRefusals {
			t.Errorf("100 refusals have %d events, want %d", len(all)-1, maxRefusals)
		}
	})
}
