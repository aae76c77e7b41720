package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/store/storetest"
)

// TestNetwork holds what the commands of the network print of a controller to which two switches are connected:
//
//	h1 - 1 s1 2 --- 2 s2 1 - h2
func TestNetwork(t *testing.T) {
	w, s := loggedIn(t, func(c *controller.Config) { c.OpenFlow = "127.0.0.1:0" })
	hosts := connectSwitches(t, s.OpenFlow)

	ready := regexp.MustCompile(`(?s)(yes\n.*){2}<->.*10\.9\.0\.1 .*10\.9\.0\.2 `)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		for _, h := range hosts {
			h.Announce()
		}
		r := w.run("network", "show")
		// A switch is current while what was just found is not in a plan yet.
		if r.code == 0 && ready.MatchString(r.out) && strings.Contains(w.run("network", "show", "-o", "json").out, `"settled": true`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after 20 s: %s%s", r.out, r.err)
		}
	}
	text := ""
	for _, line := range []string{"network show", "network show hosts -o json", "network show ports", "network path 10.9.0.1 10.9.0.2", "network path 10.9.0.1 10.9.0.7", "network flows 0000000000000007"} {
		r := w.run(strings.Fields(line)...)
		text += "$ headgate " + line + "\n" + r.err + r.out + "\n"
	}
	for _, c := range []struct{ packet, from string }{
		{"icmp 10.9.0.1 10.9.0.2", "10.9.0.1"}, {"arp 10.9.0.2", "02:00:00:00:00:01"}, {"udp 10.9.0.1:1 10.9.0.9:2", "0000000000000001/1"},
		{"udp 10.9.0.1:1 10.9.0.2:2 dmac 02:00:00:00:00:09", "0000000000000001/1"}, {"udp 10.9.0.1:1 10.9.0.2:2", "0000000000000001/2"}, {"udp 10.9.0.1", "10.9.0.1"}, {"broadcast", "0000000000000001"},
	} {
		r := w.run("network", "trace", "--packet", c.packet, "--from", c.from)
		text += "$ headgate network trace --packet '" + c.packet + "' --from " + c.from + "\n" + r.err + r.out + fmt.Sprintf("exit %d\n\n", r.code)
	}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+ *`).ReplaceAllString(text, "127.0.0.1:PORT  ")
	text = withoutRates(text)
	golden.Compare(t, filepath.Join("testdata", "network.txt"), text)
	holdTrace(t, text)

	r := w.run("network", "events")
	for _, kind := range []string{"switch-added", "link-added", "host-added"} {
		if !strings.Contains(r.out, kind) {
			t.Errorf("no event %s in\n%s", kind, r.out)
		}
	}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--kind link":                                   {exitOK, `(?s)^AT +KIND +MESSAGE\n([^\n]+ link-added +link 000000000000000[12]/2 -> 000000000000000[12]/2 is up\n){2}$`},
		"--kind host-added --since 1h":                  {exitOK, `(?s)^AT +KIND +MESSAGE\n([^\n]+ host-added [^\n]+\n){2}$`},
		"--switch 0000000000000002 --kind switch-added": {exitOK, `(?s)^AT +KIND +MESSAGE\n[^\n]+ switch-added +switch 0000000000000002 is connected from [^\n]+\n$`},
		"--since 2999-01-01T00:00:00Z -o json":          {exitOK, `^\[\]\n$`},
		"--kind links":                                  {exitUsage, `"links" is no kind of events: use one of switch, switch-added, `},
		"--since soon":                                  {exitUsage, `--since: "soon" is not a duration or time`},
		"--switch nowhere":                              {exitFailed, `no switch has the name nowhere`},
		"--follow -o yaml":                              {exitUsage, `--follow cannot be used with -o yaml: use -o json`},
	} {
		r := w.run(append([]string{"network", "events"}, strings.Fields(args)...)...)
		printed := r.out
		if r.code != exitOK {
			printed = r.err
		}
		if r.code != want.code || !regexp.MustCompile(want.text).MatchString(printed) {
			t.Errorf("network events %s: exit %d: %s%s, want %d: %s", args, r.code, r.out, r.err, want.code, want.text)
		}
	}
	if r := w.run("network", "flows", "0000000000000001"); !regexp.MustCompile(`6 deliver +1000 +\d+ +\d+ +dl_dst=02:00:00:00:00:01\S* +output:1 +MAC and VLAN of a host of this switch: out of its port`).MatchString(r.out) {
		t.Errorf("no flow to host 1 in\n%s", r.out)
	}
	for _, c := range []struct{ args, want string }{
		{"network path ", "0000000000000001\n0000000000000002\n02:00:00:00:00:01\n10.9.0.1\n02:00:00:00:00:02\n10.9.0.2\n"},
		{"network trace --from", "0000000000000001\n0000000000000002\n02:00:00:00:00:01\n10.9.0.1\n02:00:00:00:00:02\n10.9.0.2\n"},
		{"network flows ", "0000000000000001\n0000000000000002\n"},
		{"network events --switch ", "0000000000000001\n0000000000000002\n"},
		{"network events --kind ", "switch\nswitch-added\nswitch-removed\nswitch-changed\n"},
		{"network show ", "switches\nports\nlinks\nhosts\nrelays\nfaults\n"},
	} {
		if r := w.run(append(append([]string{"__complete"}, strings.Fields(c.args)...), "")...); !strings.HasPrefix(r.out, c.want) {
			t.Errorf("the completion of %q is %q, want %q", c.args, r.out, c.want)
		}
	}
	checkNames(t, w)
}

// withoutRates replaces what discovery frames and announcements take, which is nothing until the ports were read twice. The widths of
// columns depend on it.
func withoutRates(text string) string {
	for _, of := range []struct{ pattern, is string }{
		{`(assumed +)(-|\S+ 0%) +(-|\S+ 0%)`, "${1}RATE  RATE"}, {`RATE -> +RATE <-`, "RATE ->  RATE <-"},
		{`(?m)^(\d{16}/\d .* - +)\S+ +\S+$`, "${1}RATE  RATE"}, {`RECEIVES +SENDS`, "RECEIVES  SENDS"},
	} {
		text = regexp.MustCompile(of.pattern).ReplaceAllString(text, of.is)
	}
	return text
}

// checkNames checks that names of switches and hosts are printed and offered once the configuration has them.
func checkNames(t *testing.T, w testEnv) {
	t.Helper()
	w.must("network", "apply", "-f", w.write("names.yaml", fmt.Sprintf(`kind: Network
name: campus
switches: [{id: 1, name: north, host_ports: [99]}, {id: 2}]
hosts: [{name: web, mac: 02:00:00:00:00:01, addresses: [10.9.0.1], at: north/1}]
listen: [{address: "127.0.0.1:%d"}]
`, storetest.Ports(t, 1)[0])))
	for args, want := range map[string]string{
		"__complete network path 10.9.0.1 n": `(?s)^0000000000000001\nnorth\n0000000000000002\n02:00:00:00:00:01\nweb\n10\.9\.0\.1\n`,
		"network path web 10.9.0.2":          `\nnorth +1 +2\n0000000000000002 +2 +1\n`,
		"network show hosts":                 `^HOST +NAME +VLAN .*\n02:00:00:00:00:01  web +- +10\.9\.0\.1 +north/1 +configured\n`,
		"network show ports":                 `\nnorth/2 +p2 +up +link +- `,
		"network show faults":                `\nmissing-port +north/99 +port north/99 does not exist: the switch has 1 \(p1\), 2 \(p2\), LOCAL; correct the port, or add it to the switch\n`,
	} {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			r := w.run(strings.Fields(args)...)
			if regexp.MustCompile(want).MatchString(r.out) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: after 20 s: %s%s, want %s", args, r.out, r.err, want)
			}
		}
	}
}

// holdTrace checks that docs/fabric.md has the first trace of the output of commands, or writes it with -update.
func holdTrace(t *testing.T, text string) {
	t.Helper()
	const file, end = "../docs/fabric.md", "<!-- end of the trace -->\n"
	_, shown, _ := strings.Cut(text, "$ headgate network trace")
	shown, _, _ = strings.Cut("$ headgate network trace"+shown, "exit 0\n")
	before, rest, begins := strings.Cut(networkPage(t), "<!-- trace: ")
	how, rest, _ := strings.Cut(rest, "\n")
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends || !strings.Contains(shown, "delivered") {
		t.Fatalf("%s has no place for the trace %q", file, shown)
	}
	golden.Compare(t, file, before+"<!-- trace: "+how+"\n```\n"+shown+"```\n"+end+after)
}

// connectSwitches connects two switches in memory to a controller until the test ends.
func connectSwitches(t *testing.T, address string) (hosts []*oftest.Host) {
	n := oftest.NewNetwork()
	var all []*oftest.Switch
	for i := range byte(2) {
		o := oftest.Options{DatapathID: uint64(i) + 1}
		if i == 1 { // one that has less
			o.Limits.Groups = -1
		}
		s := n.AddSwitch("", o)
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
