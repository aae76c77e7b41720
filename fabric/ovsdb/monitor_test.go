package ovsdb

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// follower runs a Monitor and keeps what it reports.
type follower struct {
	t         *testing.T
	snapshots chan *Snapshot
	ends      chan error
}

func follow(t *testing.T, address string) *follower {
	f := &follower{t, make(chan *Snapshot, 1000), make(chan error, 1000)}
	m := Monitor{Address: address, Changed: func(s *Snapshot) { f.snapshots <- s }, Disconnected: func(err error) { f.ends <- err }}
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error)
	go func() { returned <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return f
}

// until waits for a snapshot for which ok is true.
func (f *follower) until(what string, ok func(*Snapshot) bool) *Snapshot {
	f.t.Helper()
	end := time.After(2 * time.Minute)
	for {
		select {
		case s := <-f.snapshots:
			if ok(s) {
				return s
			}
		case <-end:
			f.t.Fatalf("no snapshot has %s", what)
		}
	}
}

// A monitor sees each change that ovs-vsctl makes, and the last snapshot is what a session reads.
func TestMonitor(t *testing.T) {
	s := startServer(t)
	f := follow(t, s.address())
	f.until("the new database", func(s *Snapshot) bool { return reflect.DeepEqual(s, &Snapshot{}) })
	s.vsctl("add-br", "br0")
	f.until("br0", func(s *Snapshot) bool { return s.Bridge("br0") != nil && len(s.Bridge("br0").Ports) == 1 })
	s.vsctl("add-port", "br0", "eth1", "--", "set-controller", "br0", "tcp:192.0.2.1:6653")
	f.until("eth1", func(s *Snapshot) bool {
		return len(s.Bridge("br0").Ports) == 2 && len(s.Bridge("br0").Controllers) == 1
	})
	s.vsctl("set", "interface", "eth1", "link_state=up")
	f.until("a link that is up", func(s *Snapshot) bool { return s.Bridge("br0").Ports[1].Interfaces[0].LinkState == Up })
	s.vsctl("set", "interface", "eth1", "link_state=down")
	f.until("a link that is down", func(s *Snapshot) bool { return s.Bridge("br0").Ports[1].Interfaces[0].LinkState == Down })
	s.vsctl("clear", "interface", "eth1", "link_state")
	last := f.until("an unknown link", func(s *Snapshot) bool { return s.Bridge("br0").Ports[1].Interfaces[0].LinkState == "" })
	if got := s.snapshot(); !reflect.DeepEqual(last, got) {
		t.Errorf("the monitor has %+v, a session reads %+v", last, got)
	}
	s.vsctl("del-port", "br0", "eth1", "--", "del-controller", "br0")
	f.until("no eth1", func(s *Snapshot) bool {
		return len(s.Bridge("br0").Ports) == 1 && len(s.Bridge("br0").Controllers) == 0
	})
	s.vsctl("del-br", "br0")
	f.until("no bridge", func(s *Snapshot) bool { return len(s.Bridges) == 0 })
}

// What changes while the server is away is seen after it is back: rows that are new, changed and deleted.
func TestMonitorRestart(t *testing.T) {
	s := startServer(t)
	s.vsctl("add-br", "kept", "--", "add-br", "deleted", "--", "add-port", "kept", "eth1")
	f := follow(t, s.address())
	f.until("both bridges", func(s *Snapshot) bool { return len(s.Bridges) == 2 })
	s.kill()
	wantError(t, <-f.ends, s.address(), "the server closed the connection")
	s.start("other") // the monitor does not know this socket
	vsctl(t, "unix:"+filepath.Join(s.dir, "other"), "del-br", "deleted", "--", "add-br", "new", "--", "del-port", "eth1", "--", "set-fail-mode", "kept", "secure")
	wantError(t, <-f.ends, s.address()) // it tries in the meantime
	s.kill()
	s.start("socket")
	got := f.until("the change", func(s *Snapshot) bool { return s.Bridge("new") != nil })
	if got.Bridge("deleted") != nil || len(got.Bridge("kept").Ports) != 1 || got.Bridge("kept").FailMode != Secure {
		t.Errorf("after the restart the snapshot is %+v", got)
	}
	s.vsctl("add-port", "new", "eth2") // it follows on
	f.until("eth2", func(s *Snapshot) bool { return len(s.Bridge("new").Ports) == 2 })
}

// answer answers the requests of a monitor up to the first update, which is initial.
func (p *peer) answer(initial string) {
	var tables []string
	for table, columns := range allColumns() {
		tables = append(tables, `"`+table+`":{"columns":{"`+strings.Join(columns, `":{},"`)+`":{}}}`)
	}
	m := p.next()
	if m.Method != "get_schema" {
		p.t.Errorf("the monitor sent %s", m.Method)
	}
	p.send(`{"id":%s,"result":{"tables":{%s}},"error":null}`, m.ID, strings.Join(tables, ","))
	if m = p.next(); m.Method != "monitor" {
		p.t.Errorf("the monitor sent %s", m.Method)
	}
	p.send(`{"id":%s,"result":%s,"error":null}`, m.ID, initial)
}

// TestMonitorThatIsLiedTo: whatever the server sends, the connection ends with a reason, and a new one is tried.
func TestMonitorThatIsLiedTo(t *testing.T) {
	update := func(params string) func(*peer) {
		return func(p *peer) {
			p.answer(smallUpdate)
			p.send(`{"method":"update","params":%s,"id":null}`, params)
		}
	}
	for name, c := range map[string]struct {
		serve func(*peer)
		want  string
	}{
		"closes":         {func(p *peer) { p.Close() }, "closed"},
		"no schema":      {func(p *peer) { p.send(`{"id":%s,"result":{}}`, p.next().ID) }, "has no table"},
		"no monitor":     {func(p *peer) { p.answer("null") }, "the server sent no result"},
		"bad row":        {func(p *peer) { p.answer(strings.Replace(smallUpdate, "1500", `"x"`, 1)) }, "the column mtu of the table Interface"},
		"missing column": {func(p *peer) { p.answer(strings.Replace(smallUpdate, `"mtu":1500,`, "", 1)) }, "the column mtu of the table Interface"},
		"missing row": {func(p *peer) {
			p.answer(strings.Replace(smallUpdate, `"name":"br0","interfaces":["uuid","0`, `"name":"br0","interfaces":["uuid","1`, 1))
		}, "which the server did not send"},
		"update of no form": {update(`[]`), "an update of another form"},
		"update of rows":    {update(`["headgate",[]]`), "an update of another form"},
		"foreign monitor":   {update(`["x",{}]`), `an update of the monitor "x"`},
		"foreign table":     {update(`["headgate",{"Mirror":{}}]`), `an update of the table "Mirror"`},
		"row deleted":       {update(`["headgate",{"Interface":{"00000000-0000-0000-0000-000000000004":{"old":{}}}}]`), "which the server did not send"},
		"goes silent":       {func(p *peer) { p.answer(smallUpdate) }, "did not answer an echo"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				dials := 0
				var reason error
				m := Monitor{
					Address: "fake", Changed: func(*Snapshot) {},
					Disconnected: func(err error) {
						if reason == nil {
							reason = err
						}
					},
					dial: func(context.Context) (net.Conn, error) {
						if dials++; dials == 2 {
							cancel()
							return nil, errors.New("no second connection")
						}
						ours, theirs := net.Pipe()
						t.Cleanup(func() { theirs.Close() })
						p := peerOn(t, theirs)
						go func() {
							c.serve(p)
							var m message // read until the end, and answer nothing
							for p.decoder.Decode(&m) == nil {
								continue
							}
						}()
						return ours, nil
					},
				}
				if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v", err)
				}
				wantError(t, reason, "fake", c.want)
			})
		})
	}
}

// A monitor waits longer after each failure, up to a bound, and starts again with the shortest time after it had the
// state.
func TestMonitorBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var waits []time.Duration
		last := time.Now()
		m := Monitor{
			Address: "fake", Changed: func(*Snapshot) {},
			dial: func(context.Context) (net.Conn, error) {
				waits, last = append(waits, time.Since(last)), time.Now()
				switch len(waits) {
				case 6:
					ours, theirs := net.Pipe()
					go func() {
						p := peerOn(t, theirs)
						p.answer(smallUpdate)
						p.Close()
					}()
					return ours, nil
				case 9:
					cancel()
				}
				return nil, errors.New("refused")
			},
		}
		m.Run(ctx)
		second := time.Second
		if want := []time.Duration{0, second, 2 * second, 4 * second, 8 * second, 8 * second, second, 2 * second, 4 * second}; !slices.Equal(waits, want) {
			t.Errorf("the waits are %v, want %v", waits, want)
		}
	})
}

// Changes that arrive while Changed runs are one further call, with the last state.
func TestMonitorCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ours, theirs := net.Pipe()
		p := peerOn(t, theirs)
		go func() {
			p.answer(smallUpdate)
			root := "00000000-0000-0000-0000-000000000001"
			for i := range 10 {
				p.send(`{"method":"update","params":["headgate",{"Open_vSwitch":{"%s":{"new":{"ovs_version":"3.1.0","next_cfg":2,"cur_cfg":%d,
					"bridges":["set",[]],"datapaths":["map",[]]}}}}],"id":null}`, root, i)
			}
		}()
		var states []int64
		m := Monitor{
			Address: "fake",
			Changed: func(s *Snapshot) {
				if states = append(states, s.CurCfg); len(states) == 1 {
					synctest.Wait() // until all updates have arrived
				} else if s.CurCfg == 9 {
					cancel()
				}
			},
			dial: func(context.Context) (net.Conn, error) { return ours, nil },
		}
		m.Run(ctx)
		if want := []int64{1, 9}; !slices.Equal(states, want) {
			t.Errorf("the states are %v, want %v", states, want)
		}
		p.Close()
	})
}
