package packaging

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// relayFile is of an agent that is its own exit: it carries connections to the echo server of the neighbour.
const relayFile = `kind: Relay
name: web1
key: /etc/headgate/relay.key
accept: {listen: "0.0.0.0:8424", destinations: [10.0.0.2/32]}
exits: [{address: "10.0.0.1:8424", destinations: [10.0.0.2/32]}]
forward: [{listen: "10.0.0.1:8007", to: "10.0.0.2:7"}]
take: [{dport: [77]}]
`

// The commands of docs/relay.md install the relay's service. A reload and an upgrade of the packages break no connection,
// and refuse none. The service is started again after a failure, and a purge leaves nothing.
//
//	web1 (Debian with its systemd, relay agent) eth0 ── client and echo server
func TestInstalledRelay(t *testing.T) {
	labtest.NeedRoot(t)
	m, l := machineOf(t, operatorFiles(t)...)
	before := m.snapshot()
	m.follow("relay.md", "Run an agent as a service")
	m.must("systemctl is-enabled headgate-relay && headgate relay status -o json | grep west")

	serveNeighbour(t, l, "10.0.0.2:7", func(c net.Conn) { io.Copy(c, c) })
	m.must("cat >/etc/headgate/relay.yaml <<'END'\n" + relayFile + "END")
	m.follow("relay.md", "Change the configuration")
	m.until("headgate relay status --agent web1 -o json | grep '\"streams\": 8' && nft list ruleset | grep tproxy")
	first := m.mainPID()

	standing := dialRelay(t, l)
	ask(t, standing, "before")
	stop := connectAgain(t, l)
	m.follow("relay.md", "Upgrade")
	m.until("test $(systemctl show -P MainPID headgate-relay) != " + first)
	second := m.mainPID()
	m.must("readlink /proc/" + second + "/exe | grep -v deleted && readlink /proc/" + first + "/exe | grep deleted")
	ask(t, standing, "after the upgrade")
	m.must("systemctl reload headgate-relay")
	m.until("test $(systemctl show -P MainPID headgate-relay) != " + second)
	third := m.mainPID()
	ask(t, standing, "after a further reload")
	t.Logf("%d connections", stop())
	m.must("echo x >>/etc/headgate/relay.yaml; ! systemctl reload headgate-relay; sed -i '$d' /etc/headgate/relay.yaml; test $(systemctl show -P MainPID headgate-relay) = " + third)
	m.must("kill -0 " + first)
	standing.Close()
	m.until("! kill -0 " + first + " && ! kill -0 " + second)
	m.until("systemctl is-active headgate-relay")
	if restarts := strings.TrimSpace(m.must("systemctl show -P NRestarts headgate-relay")); restarts != "0" {
		t.Errorf("the service was restarted %s times", restarts)
	}

	m.must("kill -9 $(systemctl show -P MainPID headgate-relay)")
	m.until("test $(systemctl show -P NRestarts headgate-relay) = 1 && systemctl is-active headgate-relay && headgate relay status --agent web1 -o json | grep '\"streams\": 8'")
	again := dialRelay(t, l)
	ask(t, again, "after a failure")
	again.Close()
	m.must("systemctl stop headgate-relay && ! nft list ruleset | grep headgate && ! ip rule | grep 8424")
	m.must("apt purge headgate-relay headgate")
	m.compareSnapshot(before)
}

// mainPID returns the main process of the service.
func (m *machine) mainPID() string {
	m.Helper()
	return strings.TrimSpace(m.must("systemctl show -P MainPID headgate-relay"))
}

func tryDialRelay(l *lab.Lab) (c net.Conn, err error) {
	err = l.Node("eth0").Do(func() (err error) { c, err = net.DialTimeout("tcp", "10.0.0.1:8007", 10*time.Second); return err })
	return c, err
}

func dialRelay(t testing.TB, l *lab.Lab) net.Conn {
	t.Helper()
	c, err := tryDialRelay(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryAsk(c net.Conn, text string) error {
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		return fmt.Errorf("read %q, %w", got, err)
	}
	return nil
}

func ask(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if err := tryAsk(c, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// connectAgain opens connections one after another until stop is called, which returns their number.
func connectAgain(t testing.TB, l *lab.Lab) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	n := 0
	done.Go(func() {
		for ; ctx.Err() == nil; n++ {
			c, err := tryDialRelay(l)
			if err == nil {
				err = tryAsk(c, "hello")
				c.Close()
			}
			if err != nil {
				t.Errorf("connection %d: %v", n, err)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() int { cancel(); done.Wait(); return n }
}
