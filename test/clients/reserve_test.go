package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// connectEnds connects two switches in memory with a cable between them, and a host at each: 10.0.0.1 and 10.0.0.2.
func (s *service) connectEnds(t *testing.T) {
	t.Helper()
	n := oftest.NewNetwork()
	var all []*oftest.Switch
	var hosts []*oftest.Host
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range byte(2) {
		sw := n.AddSwitch("", oftest.Options{DatapathID: uint64(i + 1)})
		for no := range openflow.PortNo(2) {
			must(sw.AddPort(oftest.PortOptions{No: no + 1, Down: true}))
		}
		h, err := n.AddHost(oftest.HostOptions{MAC: openflow.MAC{2, 0, 0, 0, 0, i + 1}, Addrs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, i + 1}), 24),
		}}, oftest.End{Switch: sw, Port: 1}, oftest.CableOptions{})
		must(err)
		all, hosts = append(all, sw), append(hosts, h)
	}
	_, err := n.AddCable(oftest.End{Switch: all[0], Port: 2}, oftest.End{Switch: all[1], Port: 2}, oftest.CableOptions{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, sw := range all {
		running.Go(func() {
			sw.Dial(ctx, time.Second, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", s.OpenFlow)
			})
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		for _, h := range hosts {
			h.Announce()
		}
		is, err := client.Decode[client.Network](s.client.GetNetwork(t.Context()))
		if err == nil && is.Settled && len(is.Links) == 2 && len(is.Hosts) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after 30 s the network is %+v, %v", is, err)
		}
	}
}

// receiver discards what it receives, and closes when the other side has sent everything. It returns its address.
func receiver(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

// The programs of examples/tenant that reserve before they send take the counter-offer of a refusal, extend their
// reservation while they send, and cancel it at the end, also when they are interrupted.
func TestReservingPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "reserve")
	run(t, filepath.Join(root, "examples/tenant/go"), nil, "go", "build", "-o", binary, "./reserve")
	script, err := filepath.Abs(filepath.Join(root, "examples/tenant/python/reserve.py"))
	if err != nil {
		t.Fatal(err)
	}
	s := control(t)
	s.connectEnds(t)
	must[client.Tenant](t)(s.client.PutTenant(t.Context(), "shop", nil, client.Tenant{Reservations: &client.ReservationBounds{Rate: "10Mbit", Duration: "1h", Ahead: "1h"}}))
	shop := "shop"
	token := must[client.NewToken](t)(s.client.CreateToken(t.Context(), nil, client.TokenRequest{Name: "program", Role: client.RoleTenant, Tenant: &shop}))
	write(t, filepath.Join(dir, "shop.token"), []byte(token.Token+"\n"))
	// 1 Mbit/s of the link is left.
	from, to, rate, hour := "10.0.0.1", "10.0.0.2", "999Mbit", "1h"
	must[client.Reservation](t)(s.client.CreateReservation(t.Context(), nil, client.NewReservation{
		Name: "others", From: client.ReservationEnd{Host: &from}, To: client.ReservationEnd{Host: &to}, Rate: &rate, Duration: &hour,
	}))
	address := receiver(t)
	for name, program := range map[string][]string{"go": {binary}, "python": {"python3", "-B", script}} {
		length := "2"
		if name == "go" {
			length = "2s"
		}
		start := func(size int, least string) (*exec.Cmd, *bytes.Buffer) {
			c := exec.CommandContext(t.Context(), program[0], append(program[1:], "--to", address, "--size", fmt.Sprint(size), "--rate", "5Mbit", "--least", least, "--for", length,
				"--from-host", from, "--to-host", to, "--name", "backup", "--service", s.URL, "--ca", s.authority, "--token-file", filepath.Join(dir, "shop.token"))...)
			said := new(bytes.Buffer)
			c.Stdout, c.Stderr = said, said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			return c, said
		}
		reserved := func() bool {
			list := must[client.ReservationList](t)(s.client.ListReservations(t.Context(), &client.ListReservationsParams{Owner: &shop}))
			return len(list.Items) > 0
		}
		// 300 kB at 0.9 Mbit/s take 2.7 s, longer than the reservation.
		c, said := start(300_000, "500kbit")
		err := c.Wait()
		last := -1
		for _, want := range []string{"refused: ", "taking 1Mbit", "reserved 1Mbit until", "extended until", "300000 bytes arrived", "released backup"} {
			at := strings.Index(said.String(), want)
			if at <= last {
				t.Errorf("%s: it does not say %q next", name, want)
			}
			last = at
		}
		if err != nil || reserved() {
			t.Errorf("%s: %v, and it has a reservation: %v\n%s", name, err, reserved(), said)
		}
		c, said = start(300_000, "2Mbit")
		if err := c.Wait(); err == nil || !strings.Contains(said.String(), "1Mbit is offered, less than 2Mbit") || reserved() {
			t.Errorf("%s, with less than is enough: %v\n%s", name, err, said)
		}
		c, said = start(10_000_000, "500kbit")
		for end := time.Now().Add(20 * time.Second); !reserved() && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond) // the program has its response
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err == nil || !strings.Contains(said.String(), "told to stop") || reserved() {
			t.Errorf("%s, interrupted: %v\n%s", name, err, said)
		}
	}
}
