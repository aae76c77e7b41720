package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// device returns a device of h1, as the service reports it.
func (s *serviceTest) device(name string) (out api.HostDevice, ok bool) {
	s.t.Helper()
	var host api.HostState
	if err := json.Unmarshal(s.must("GET", "/v1/hosts/h1", ""), &host); err != nil {
		s.t.Fatal(err)
	}
	if host.Devices != nil {
		for _, d := range *host.Devices {
			if d.Name == name {
				return d, true
			}
		}
	}
	return out, false
}

// owned returns a function that reports whether a device has this owner at the service.
func (s *serviceTest) owned(name, owner string) func() bool {
	return func() bool {
		d, ok := s.device(name)
		return ok && d.Owner != nil && string(*d.Owner) == owner
	}
}

// An interface with a device pattern at the service applies to the veth of each new container, also
// when a container returns. The container's traffic is in the group. A device in a file of the host is
// owned by the file, even if the service has an interface for it. Host and service report the owner.
func TestServicePattern(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node, dir := l.Node("server"), t.TempDir()
		s := serve(t, node, dir)
		local := filepath.Join(dir, "local.yaml")
		if err := os.WriteFile(local, []byte("kind: Interface\ndev: vehost\nout: {limit: 50Mbit, groups: [{name: ours, default: true}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.kill()
		s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"), "-f", local)
		document := func(limit string) string {
			return fmt.Sprintf(`{"perspective": "guest", "out": {"limit": %q, "groups": [{"name": "ping", "match": [{"proto": ["icmp"]}]}, {"name": "rest", "default": true}]}}`, limit)
		}
		s.must("PUT", "/v1/hosts/h1/interfaces/ve%2A", document("20Mbit"))
		// container starts a process in a new network namespace, with one end of a veth.
		container := func(dev string, n int) *lab.Cmd {
			t.Helper()
			c := node.Command(t.Context(), "unshare", "-n", "sleep", "60")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Kill(); c.Wait() })
			pid := c.Process.Pid
			s.eventually("the container has its namespace", func() bool {
				a, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
				b, err2 := os.Readlink("/proc/self/ns/net")
				x := labtest.Run(t, node, "readlink", "/proc/self/ns/net")
				return err1 == nil && err2 == nil && a != b && a != strings.TrimSpace(x)
			})
			labtest.Run(t, node, "sh", "-ec", fmt.Sprintf(`
				ip link add %[1]s type veth peer name inside
				ip link set inside netns %[3]d
				ip addr add 10.77.%[2]d.1/24 dev %[1]s
				ip link set %[1]s up
				nsenter -t %[3]d -n sh -ec 'ip link set inside name eth0; ip addr add 10.77.%[2]d.2/24 dev eth0; ip link set eth0 up'`, dev, n, pid))
			return c
		}
		shown := func(dev string) (out shaper.State) {
			t.Helper()
			var states []shaper.State
			if err := json.Unmarshal([]byte(s.localCommand("show", "groups", "-o", "json")), &states); err != nil {
				t.Fatal(err)
			}
			for _, state := range states {
				if state.Dev == dev {
					return state
				}
			}
			return out
		}
		for n, dev := range []string{"ve0", "ve1", "ve0"} {
			c := container(dev, n)
			s.eventually(dev+" is owned by the controller", s.owned(dev, "controller"))
			s.eventually(dev+" has its groups", func() bool { return shown(dev).Plan.Out != nil })
			labtest.Run(t, node, "nsenter", "-t", fmt.Sprint(c.Process.Pid), "-n", "ping", "-q", "-c", "5", "-i", "0.02", fmt.Sprintf("10.77.%d.1", n))
			got := shown(dev)
			if got.Out.Groups[0].Path != "ping" || got.Out.Groups[0].Packets < 5 || got.Owner != "controller" || got.Plan.Out.Limit != 20*unit.Mbit {
				t.Errorf("%s has %+v, owned by %q", dev, got.Out.Groups, got.Owner)
			}
			if n == 0 {
				// The kernel removes the namespace with its last process, and the veth with the namespace.
				c.Process.Kill()
				c.Wait()
				s.eventually(dev+" is gone", func() bool { _, there := s.device(dev); return !there })
			}
		}
		s.must("PUT", "/v1/hosts/h1/interfaces/ve%2A", document("30Mbit"))
		s.eventually("all have the new limit", func() bool {
			return shown("ve0").Plan.Out.Limit == 30*unit.Mbit && shown("ve1").Plan.Out.Limit == 30*unit.Mbit
		})

		s.must("PUT", "/v1/hosts/h1/interfaces/vehost", document("40Mbit"))
		s.eventually("the problem names the owner before the device exists", func() bool {
			d, ok := s.device("vehost")
			return ok && d.Error != nil && strings.Contains(*d.Error, "a local file of the host configures the device")
		})
		container("vehost", 9)
		s.eventually("vehost is owned by the file", s.owned("vehost", "local"))
		s.eventually("vehost has the file's groups", func() bool { return shown("vehost").Plan.Out != nil })
		if got := shown("vehost"); got.Owner != local || got.Plan.Out.Limit != 50*unit.Mbit {
			t.Errorf("the owner of vehost is %q, the limit %v", got.Owner, got.Plan.Out.Limit)
		}
		if said := s.localCommand("show"); !strings.Contains(said, "vehost, enforced by htb, managed by the agent for "+local) || !strings.Contains(said, "ve1, enforced by htb, managed by the agent for controller") {
			t.Errorf("show prints %s", said)
		}
		// Without the file, the controller becomes the owner.
		if err := os.WriteFile(local, []byte("kind: Interface\ndev: none0\nout: {limit: 50Mbit, groups: [{name: ours, default: true}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.agent.Process.Signal(syscall.SIGHUP)
		s.eventually("vehost is owned by the controller", s.owned("vehost", "controller"))
		s.eventually("vehost has the controller's groups", func() bool { return shown("vehost").Plan.Out.Limit == 40*unit.Mbit })
		s.must("DELETE", "/v1/hosts/h1/interfaces/ve%2A", "")
		s.eventually("the other devices are cleared", func() bool { return shown("ve0").Plan.Out == nil && shown("ve1").Plan.Out == nil })
		s.eventually("ve1 has no owner", s.owned("ve1", "none"))
	})
}

// The service reports foreign traffic control of a device until it is removed, and the machine's
// features.
func TestServiceFacts(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		labtest.Run(t, node, "sh", "-ec", "ip link add other0 type veth peer name other1; ip link set other0 up; tc qdisc add dev other0 root tbf rate 1mbit burst 10k latency 50ms")
		s := serve(t, node, t.TempDir())
		foreign := func(name string) string {
			t.Helper()
			d, _ := s.device(name)
			if d.Foreign == nil {
				return ""
			}
			return strings.Join(*d.Foreign, "\n")
		}
		s.eventually("the foreign qdisc is reported", func() bool { return strings.Contains(foreign("other0"), "tbf") })
		if got := foreign("other1"); got != "" {
			t.Errorf("other1 has foreign traffic control %q", got)
		}
		// An interface for the device is not applied, and the problem names the qdisc.
		s.must("PUT", "/v1/hosts/h1/interfaces/other0", `{"out": {"limit": "10Mbit", "groups": [{"name": "rest", "default": true}]}}`)
		s.eventually("the problem names the foreign qdisc", func() bool {
			d, _ := s.device("other0")
			return d.Error != nil && strings.Contains(*d.Error, "tbf")
		})
		labtest.Run(t, node, "tc", "qdisc", "del", "dev", "other0", "root")
		for range 4 { // the agent checks every ten seconds
			if foreign("other0") == "" {
				break
			}
			time.Sleep(5 * time.Second)
		}
		if got := foreign("other0"); got != "" {
			t.Errorf("foreign traffic control after its removal: %q", got)
		}
		s.eventually("the interface is in force", func() bool {
			d, _ := s.device("other0")
			return d.Error == nil && strings.Contains(s.localCommand("show"), "other0, enforced by htb")
		})
		var host api.HostState
		s.eventually("the machine's features are reported", func() bool {
			if err := json.Unmarshal(s.must("GET", "/v1/hosts/h1", ""), &host); err != nil {
				t.Fatal(err)
			}
			return host.Features != nil
		})
		has := map[string]string{}
		for _, f := range *host.Features {
			has[f.Name] = string(f.State)
		}
		if has["HTB"] != "ok" || has["cgroup v2"] != "ok" || host.Kernel == nil || *host.Kernel == "" {
			t.Errorf("features are %v, the kernel %v", has, host.Kernel)
		}
	})
}
