package ovsdb_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/ovsdb"
	"headgate.dev/headgate/fabric/ovsdb/ovsdbtest"
)

// Hosts in a VLAN reach each other over bridges that Connect has configured, which needs its vlan-limit of 2: with Open
// vSwitch's default of 1 the frames are lost at the last switch.
//
//	h1 - s1 - s2 - h2
func TestConnectedBridgesCarryVLANs(t *testing.T) {
	o := ovsdbtest.Start(t)
	o.Run("ovs-vsctl", "add-br", "s1", "--", "set", "bridge", "s1", "other_config:datapath-id=0000000000000001", "--",
		"add-br", "s2", "--", "set", "bridge", "s2", "other_config:datapath-id=0000000000000002", "--",
		"add-port", "s1", "l1", "--", "set", "interface", "l1", "type=dummy", "options:pstream=punix:"+filepath.Join(o.Dir, "cable"), "--",
		"add-port", "s2", "l2", "--", "set", "interface", "l2", "type=dummy", "options:stream=unix:"+filepath.Join(o.Dir, "cable"), "--",
		"add-port", "s1", "h1", "--", "set", "interface", "h1", "type=dummy", "--",
		"add-port", "s2", "h2", "--", "set", "interface", "h2", "type=dummy", "options:tx_pcap="+filepath.Join(o.Dir, "h2.pcap"))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	n := live.New(ctx, live.Options{Key: []byte("key"), Generation: 1, Event: func(fabric.Event) {}})
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = n.Serve(c) }) // ends with ctx
		}
	})
	t.Cleanup(func() { cancel(); listener.Close(); serving.Wait() })

	session, err := ovsdb.Dial(ctx, o.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	bridges := []string{"s1", "s2"}
	if _, _, err := session.Connect(ctx, ovsdb.ConnectConfig{Bridges: bridges, Controllers: []string{"tcp:" + listener.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after 60 s it is not so that %s", what)
			}
		}
	}
	until("the link is found", func() bool { p := n.Plan(); return p != nil && len(p.Topology.Links()) == 2 })

	receive := func(port string, frame []byte) {
		o.Run("ovs-appctl", "netdev-dummy/receive", port, hex.EncodeToString(frame))
	}
	mac := func(host byte) []byte { return []byte{2, 0, 0, 0, 0, host} }
	tagged := func(to, from []byte, kind ...byte) []byte {
		return append(append(append(bytes.Clone(to), from...), 0x81, 0, 0, 7), kind...)
	}
	announce := func(host byte) []byte { // an ARP request for its own address
		arp := append([]byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, mac(host)...)
		arp = append(append(arp, 10, 9, 0, host, 0, 0, 0, 0, 0, 0), 10, 9, 0, host)
		return tagged([]byte{255, 255, 255, 255, 255, 255}, mac(host), append(arp, make([]byte, 18)...)...)
	}
	until("both hosts are found", func() bool {
		receive("h1", announce(1))
		receive("h2", announce(2))
		return len(n.Plan().Topology.Hosts()) == 2 && n.Settled()
	})

	data := func(text string) []byte {
		return tagged(mac(2), mac(1), append([]byte{0x88, 0xb5}, text+string(make([]byte, 46))...)...)
	}
	arrived := func(frame []byte) bool {
		capture, err := os.ReadFile(filepath.Join(o.Dir, "h2.pcap"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(capture, frame)
	}
	until("a frame arrives with its tag", func() bool {
		receive("h1", data("two tags"))
		return arrived(data("two tags"))
	})
	limit := func(value string) {
		o.Run("ovs-vsctl", "set", "open_vswitch", ".", "other_config:vlan-limit="+value)
		o.Run("ovs-appctl", "revalidator/purge") // what was decided under the other limit
	}
	limit("1")
	for range 10 {
		receive("h1", data("one tag"))
	}
	limit("2")
	until("a frame arrives again", func() bool {
		receive("h1", data("two again"))
		return arrived(data("two again"))
	})
	if arrived(data("one tag")) {
		t.Error("with vlan-limit=1 a frame in a VLAN has passed two switches: then Connect need not set it")
	}
}
