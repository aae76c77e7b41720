package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/fabric/ovsdb/ovsdbtest"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/store/storetest"
)

// TestFirstSwitch runs the commands of docs/fabric.md with an Open vSwitch and a controller of the test, and holds what
// connect and disconnect print.
func TestFirstSwitch(t *testing.T) {
	o := ovsdbtest.Start(t)
	t.Setenv("OVS_RUNDIR", o.Dir)
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	s := controllertest.Run(t, storetest.Open(t, storetest.Start(t)), config, nil)
	w := newWorld(t)
	t.Setenv("XDG_CONFIG_HOME", w.dir)
	replace := strings.NewReplacer("https://127.0.0.1:8420", s.URL, "$PIN", s.Pin, "/var/lib/headgate/controller/operator.token", w.write("operator.token", s.Operator), "127.0.0.1:6653", s.OpenFlow)

	page := networkPage(t)
	_, section, _ := strings.Cut(page, "\n## Connect the first switch\n")
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)[1]
	text, ran := "", 0
	run := func(line string) {
		t.Helper()
		r := w.run(strings.Fields(replace.Replace(line))...)
		text += "$ headgate " + line + "\n" + r.err + r.out + "\n"
	}
	o.Run("ovs-vsctl", "set", "open_vswitch", ".", "external_ids:test=1")
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		ran++
		switch strings.Join(words[:2], " ") {
		case "ovs-vsctl add-br":
			o.Run(words[0], words[1:]...)
			o.Run("ovs-vsctl", "set", "bridge", "br0", "other_config:datapath-id=00000000000000a1", "protocols=OpenFlow10")
		case "headgate controller": // it runs
			if !strings.Contains(line, " --openflow 127.0.0.1:6653") {
				t.Errorf("the controller is at another address: %s", line)
			}
		case "headgate login":
			w.must(strings.Fields(replace.Replace(line))[1:]...)
		case "headgate network":
			line = strings.TrimSpace(strings.TrimPrefix(line, "headgate "))
			if !strings.HasPrefix(line, "network connect ") {
				continue
			}
			run(line + " --dry-run")
			run(line)
			run(line)
		default:
			t.Errorf("the test has no command %s", line)
		}
	}
	if ran != 5 {
		t.Errorf("docs/fabric.md has %d commands for the first switch, want 5", ran)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r := w.run("network", "show", "switches")
		if regexp.MustCompile(`00000000000000a1 .*Open vSwitch.* yes\n`).MatchString(r.out) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after 20 s: %s%s", r.out, r.err)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:br0|all) +(\S+) `).FindAllStringSubmatch(text, -1) {
		if setting := m[1]; !strings.Contains(setting, "127.0.0.1") && !strings.Contains(page, "\n| `"+setting+"` |") {
			t.Errorf("docs/fabric.md has no row of %s", setting)
		}
	}
	run("network connect br0 --controller tcp:127.0.0.1:6653 -o json --wait 0")
	run("network disconnect br0 -o json --dry-run")
	run("network disconnect br0")
	run("network disconnect br0")
	if r := w.run("__complete", "network", "connect", ""); !strings.HasPrefix(r.out, "br0\n") {
		t.Errorf("the completion is %q", r.out)
	}
	golden.Compare(t, filepath.Join("testdata", "network_connect.txt"), strings.ReplaceAll(text, s.OpenFlow, "127.0.0.1:PORT0"))
	if got := o.Run("ovs-vsctl", "get", "bridge", "br0", "external_ids", "other_config", "protocols"); got != "{}\n{datapath-id=\"00000000000000a1\"}\n[OpenFlow10]" {
		t.Errorf("the bridge has %s", got)
	}
}

// What connect refuses, and what it warns of.
func TestNetworkConnectErrors(t *testing.T) {
	w := newWorld(t)
	t.Setenv("OVS_RUNDIR", w.dir)
	const tcp = " --controller tcp:192.0.2.1"
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"connect" + tcp:                                                      {exitUsage, "missing argument"},
		"connect br0":                                                        {exitUsage, "--controller is missing"},
		"connect br0 --controller 192.0.2.1":                                 {exitUsage, "write ssl:ADDRESS:PORT"},
		"connect br0 --controller=":                                          {exitUsage, `"" is not the target of a controller`},
		"connect br0" + tcp + " --cert x":                                    {exitUsage, "TLS needs --ca, --cert and --key: add --ca and --key"},
		"connect br0" + tcp + " --ca x --cert x --key x":                     {exitUsage, `cannot use the certificate "x" with the private key "x"`},
		"connect br0" + tcp + " --db ssl:192.0.2.9 --db-ca x":                {exitFailed, "TLS needs --db-ca, --db-cert and --db-key: add --db-cert and --db-key"},
		"connect br0" + tcp + " --db tcp:192.0.2.9 --ca ca --cert c --key k": {exitUsage, "write its path from / on"},
		"connect br0" + tcp:                                                  {exitFailed, "systemctl status openvswitch-switch"},
		"connect br0" + tcp + " --db x":                                      {exitFailed, "write unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT"},
		"connect br0" + tcp + " --db ssl:192.0.2.9":                          {exitFailed, "TLS needs a certificate"},
		"disconnect":                            {exitUsage, "missing argument"},
		"disconnect br0":                        {exitFailed, "systemctl status openvswitch-switch"},
		"connect lo --controller tcp:127.0.0.1": {exitFailed, "this machine reaches tcp:127.0.0.1:6653 over the bridge lo itself"},
	} {
		if r := w.run(append([]string{"network"}, strings.Fields(args)...)...); r.code != want.code || !strings.Contains(r.err, want.text) {
			t.Errorf("network %s: exit %d: %s, want %d: %s", args, r.code, r.err, want.code, want.text)
		}
	}

	o := ovsdbtest.Start(t)
	if err := os.Remove(w.dir + "/db.sock"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	t.Setenv("OVS_RUNDIR", o.Dir)
	o.Run("ovs-vsctl", "add-br", "br0")
	if r := w.run("network", "connect", "br1", "--controller", "tcp:192.0.2.1"); r.code != exitFailed || !strings.Contains(r.err, "there is no bridge br1: the bridges are br0") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.run("network", "connect", "br0", "--controller", "tcp:127.0.0.1:1", "--wait", "1s"); r.code != exitFailed || !strings.Contains(r.out, "fail_mode") ||
		!strings.Contains(r.err, "the bridge br0 is configured, but no controller is connected after 1s") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	o.KillVswitchd()
	if r := w.run("network", "connect", "br0", "--controller", "tcp:127.0.0.1:2"); r.code != exitFailed || !strings.Contains(r.err, "ovs-vswitchd is not running") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}
