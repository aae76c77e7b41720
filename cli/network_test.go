package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/api/login"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/store/storetest"
)

// TestNetwork holds what the commands of the network print of a controller to which two switches are connected:
//
//	h1 - 1 s1 2 --- 2 s2 1 - h2
func TestNetwork(t *testing.T) {
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	s := controllertest.Run(t, storetest.Open(t, storetest.Start(t)), config, nil)
	w := newWorld(t)
	logins, err := json.Marshal(login.Logins{Newest: "default", Profiles: map[string]login.Credentials{"default": {URL: s.URL, Token: s.Operator, Pin: s.Pin}}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("headgate/logins.json", string(logins))
	t.Setenv("XDG_CONFIG_HOME", w.dir)
	hosts := connectSwitches(t, s.OpenFlow)

	ready := regexp.MustCompile(`(?s)(yes\n.*){2}<->.*10\.9\.0\.1 .*10\.9\.0\.2 `)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		for _, h := range hosts {
			h.Announce()
		}
		r := w.run("network", "show")
		if r.code == 0 && ready.MatchString(r.out) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after 20 s: %s%s", r.out, r.err)
		}
	}
	text := ""
	for _, line := range []string{"network show", "network show hosts -o json", "network path 10.9.0.1 10.9.0.2", "network path 10.9.0.1 10.9.0.7", "network flows 0000000000000007"} {
		r := w.run(strings.Fields(line)...)
		text += "$ headgate " + line + "\n" + r.err + r.out + "\n"
	}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+ *`).ReplaceAllString(text, "127.0.0.1:PORT  ")
	golden.Compare(t, filepath.Join("testdata", "network.txt"), text)

	r := w.run("network", "events")
	for _, kind := range []string{"switch-added", "link-added", "host-added"} {
		if !strings.Contains(r.out, kind) {
			t.Errorf("no event %s in\n%s", kind, r.out)
		}
	}
	if r := w.run("network", "flows", "0000000000000001"); !regexp.MustCompile(`6 deliver +1000 +\d+ +\d+ +dl_dst=02:00:00:00:00:01\S* +output:1 +MAC and VLAN of a host of this switch: out of its port`).MatchString(r.out) {
		t.Errorf("no flow to host 1 in\n%s", r.out)
	}
	for _, c := range []struct{ args, want string }{
		{"network path ", "0000000000000001\n0000000000000002\n02:00:00:00:00:01\n10.9.0.1\n02:00:00:00:00:02\n10.9.0.2\n"},
		{"network flows ", "0000000000000001\n0000000000000002\n"},
		{"network show ", "switches\nlinks\nhosts\nfaults\n"},
	} {
		if r := w.run(append(append([]string{"__complete"}, strings.Fields(c.args)...), "")...); !strings.HasPrefix(r.out, c.want+":") {
			t.Errorf("the completion of %q is %q, want %q", c.args, r.out, c.want)
		}
	}
}

// connectSwitches connects two switches in memory to a controller until the test ends.
func connectSwitches(t *testing.T, address string) (hosts []*oftest.Host) {
	n := oftest.NewNetwork()
	var all []*oftest.Switch
	for i := range byte(2) {
		s := n.AddSwitch("", oftest.Options{DatapathID: uint64(i) + 1})
		for no := range openflow.PortNo(2) {
			if err := s.AddPort(oftest.PortOptions{No: no + 1, Down: true}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := n.AddHost(oftest.HostOptions{MAC: openflow.MAC{2, 0, 0, 0, 0, i + 1}, Addrs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, i + 1}), 24),
		}}, oftest.End{Switch: s, Port: 1}, oftest.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all, hosts = append(all, s), append(hosts, h)
	}
	if _, err := n.AddCable(oftest.End{Switch: all[0], Port: 2}, oftest.End{Switch: all[1], Port: 2}, oftest.CableOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, s := range all {
		running.Go(func() {
			s.Dial(ctx, time.Second, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address)
			})
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return hosts
}
