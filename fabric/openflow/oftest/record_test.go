package oftest

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// A recording needs an ovs-vswitchd whose bridge has this directory's c1.sock and c2.sock as controllers:
// testdata/record.sh starts one with a dummy datapath, which needs neither root nor a network.
var record = flag.String("record", "", "record what a real Open vSwitch answers to the scripts: the directory of its sockets")

// recorder is two controllers of a real switch.
type recorder struct {
	dir       string
	listeners [2]net.Listener
	conns     [2]*peer
}

// peer is a controller's end of a channel, for tests that decide each byte.
type peer struct {
	conn net.Conn
	got  chan []byte // closed when the connection ends
}

// newPeer says hello and reads what the switch sends. The hello of the switch is not passed on.
func newPeer(conn net.Conn) *peer {
	p := &peer{conn: conn, got: make(chan []byte, 1<<11)}
	go func() {
		defer close(p.got)
		r := bufio.NewReader(conn)
		for {
			b, err := next(r)
			if err != nil {
				return
			}
			switch openflow.Type(b[1]) {
			case openflow.TypeHello:
			case openflow.TypeEchoRequest:
				b[1] = byte(openflow.TypeEchoReply)
				if _, err := conn.Write(b); err != nil {
					return
				}
			default:
				p.got <- b
			}
		}
	}()
	b, _ := openflow.Append(nil, 0, openflow.NewHello(openflow.Version))
	_, _ = conn.Write(b)
	return p
}

// barrierXID is the transaction id of the barriers that a recorder adds.
const barrierXID = 0xbabababa

// drain sends a barrier, and returns what comes before its answer.
func (p *peer) drain() ([][]byte, error) {
	b, _ := openflow.Append(nil, barrierXID, &openflow.BarrierRequest{})
	if _, err := p.conn.Write(b); err != nil {
		return nil, err
	}
	var all [][]byte
	for b := range p.got {
		if xid, m, err := openflow.Decode(b); err == nil && m.Type() == openflow.TypeBarrierReply && xid == barrierXID {
			return all, nil
		}
		all = append(all, b)
	}
	return all, io.ErrUnexpectedEOF
}

// recordScripts records all scripts from the switch that is connected to the sockets in a directory.
func recordScripts(t *testing.T, dir string) {
	r := &recorder{dir: dir}
	for i := range r.listeners {
		l, err := net.Listen("unix", filepath.Join(r.dir, fmt.Sprintf("c%d.sock", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r.listeners[i] = l
	}
	for _, s := range scripts() {
		if err := r.run(s); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := os.WriteFile(filepath.Join("testdata", s.name+".txt"), []byte(s.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// run does the steps of a script, and adds to each what the controllers received.
func (r *recorder) run(s *script) error {
	for i, l := range r.listeners {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		r.conns[i] = newPeer(conn)
	}
	for _, m := range cleared() {
		b, _ := openflow.Append(nil, 0, m)
		if _, err := r.conns[0].conn.Write(b); err != nil {
			return err
		}
	}
	if _, err := r.received(); err != nil {
		return err
	}
	for i := range s.steps {
		st := &s.steps[i]
		var err error
		switch {
		case st.to > 0:
			_, err = r.conns[st.to-1].conn.Write(st.send)
		case st.frame != nil:
			var out []byte
			if out, err = exec.Command("ovs-appctl", "-t", filepath.Join(r.dir, "vswitchd.ctl"), "netdev-dummy/receive", fmt.Sprintf("p%d", st.port), fmt.Sprintf("%x", st.frame)).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		default:
			time.Sleep(st.wait)
		}
		if err == nil {
			st.got, err = r.received()
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, st.comment, err)
		}
	}
	return nil
}

// received returns what both controllers received. Open vSwitch sends packet-ins of a packet-out after the answer to the
// barrier that follows it, therefore there are two barriers.
func (r *recorder) received() (all [2][][]byte, err error) {
	for range 2 {
		for i, p := range r.conns {
			got, err := p.drain()
			if err != nil {
				return all, err
			}
			all[i] = append(all[i], got...)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return all, nil
}

// cleared deletes all flows, groups and meters.
func cleared() []openflow.Message {
	return []openflow.Message{
		&openflow.FlowMod{Table: openflow.AllTables, Command: openflow.FlowDelete, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny},
		&openflow.GroupMod{Command: openflow.GroupDelete, Group: openflow.GroupAll},
		&openflow.MeterMod{Command: openflow.MeterDelete, Meter: openflow.MeterAll},
	}
}
