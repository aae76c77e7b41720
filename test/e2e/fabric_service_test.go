package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/labtest"
)

// The commands of docs/fabric.md connect bridges of Open vSwitch to a service: the configuration of the network is set, each bridge
// gets its certificate, and hosts reach each other. A bridge that is not listed is refused.
//
//	h1 - s1 - s2 - h2
func TestFabricService(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Up(t, switched("fabric", []string{"h1", "h2", "c"}, []string{"s1", "s2"}, [][2]string{{"h1", "s1"}, {"h2", "s2"}, {"s1", "s2"}}))
		dir := t.TempDir()
		s := serve(t, l.Node("c"), dir)
		s.localUser(dir)
		write := func(switches string) string {
			file := filepath.Join(dir, "network.yaml")
			if err := os.WriteFile(file, []byte("kind: Network\nname: campus\nswitches:\n"+switches), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
		s.localCommand("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		s.localCommand("network", "apply", "-f", write("  - {id: 1, name: s1}\n  - {id: 2, name: s2}\n"))
		// All bridges of the lab have one database, and so one certificate: at first that of s1, so that s2 is refused.
		vsctl := func(args ...string) string {
			out, err := l.Switch("s1").Command(t.Context(), "ovs-vsctl", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("ovs-vsctl %v: %v: %s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		pki := filepath.Join(dir, "pki")
		s.localCommand("network", "certificate", "s1", "--to", pki)
		vsctl("set-ssl", filepath.Join(pki, "key.pem"), filepath.Join(pki, "cert.pem"), filepath.Join(pki, "ca.pem"))
		plain := vsctl("get-controller", "s1")
		for _, bridge := range []string{"s1", "s2"} {
			vsctl("set-controller", bridge, strings.Replace(plain, "tcp:", "ssl:", 1))
		}
		shows := func(want string, args ...string) {
			t.Helper()
			s.eventually(want, func() bool {
				out := s.localCommand(append([]string{"network"}, args...)...)
				return strings.Contains(out, want)
			})
		}
		shows("\n0000000000000001 ", "show", "switches") // the first line names the other, which is not connected
		shows("switch 0000000000000002 has a certificate of switch 0000000000000001", "events")
		if out := s.localCommand("network", "show", "switches"); strings.Contains(out, "\n0000000000000002 ") {
			t.Errorf("a switch with the certificate of another is connected:\n%s", out)
		}

		s.localCommand("network", "certificate", "s1", "s2", "--to", pki)
		vsctl("del-ssl")
		vsctl("set-ssl", filepath.Join(pki, "key.pem"), filepath.Join(pki, "cert.pem"), filepath.Join(pki, "ca.pem"))
		shows("<->", "show", "links")
		a, err := l.Node("h2").Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		s.eventually("h1 reaches h2", func() bool { _, err := pingOnce(l.Node("h1"), a); return err == nil })

		// Without TLS at this address, both connect, and their hosts reach each other.
		address := strings.TrimPrefix(plain, "tcp:")
		s.localCommand("network", "apply", "-f", write("  - {id: 1, name: s1}\n  - {id: 2, name: s2}\nlisten: [{address: \""+address+"\", tls: false}]\n"))
		for _, bridge := range []string{"s1", "s2"} {
			vsctl("set-controller", bridge, plain)
		}
		shows(`"address": "`+address, "show", "-o", "json")
		s.eventually("h1 reaches h2", func() bool { _, err := pingOnce(l.Node("h1"), a); return err == nil })

		// Switches that connect again lose nothing of what they carry.
		pings := l.Node("h1").Command(t.Context(), "ping", "-i0.1", "-c50", "-W1", a.String())
		reconnected := time.AfterFunc(time.Second, func() {
			for _, bridge := range []string{"s1", "s2"} {
				vsctl("set-controller", bridge, plain)
			}
		})
		defer reconnected.Stop()
		if out, err := pings.CombinedOutput(); err != nil || !strings.Contains(string(out), "50 received") {
			t.Errorf("while switches connect again: %v: %s", err, out)
		}

		// A switch that no controller reaches forwards as before, and its neighbour shows that it does.
		vsctl("set-controller", "s2", "tcp:127.0.0.1:9") // nothing listens there
		shows("the controller does not reach it", "show", "faults")
		time.Sleep(2 * time.Second) // after half a second without frames that come back, the link would be down
		if out, err := pingOnce(l.Node("h1"), a); err != nil {
			t.Errorf("h1 does not reach h2 over a switch without a controller: %s", out)
		}
		vsctl("set-controller", "s2", plain)
		s.eventually("s2 is connected again", func() bool {
			return !strings.Contains(s.localCommand("network", "show", "faults"), "does not reach it")
		})

		// s2 is taken out.
		s.localCommand("network", "apply", "-f", write("  - {id: 1, name: s1}\nlisten: [{address: \""+address+"\", tls: false}]\n"))
		shows("switch 0000000000000002 is not in the configuration of the network", "events")
	})
}

// localUser gives the commands of the test a directory for their logins.
func (s *serviceTest) localUser(dir string) {
	s.confined = map[string][]string{}
	for _, command := range []string{"login", "network", "reserve"} {
		s.confined[command] = []string{"XDG_CONFIG_HOME=" + dir}
	}
}
