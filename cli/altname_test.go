package cli

import (
	"strings"
	"testing"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// TestAlternativeNames: every command accepts any alternative name of a device, as ip and tc do.
func TestAlternativeNames(t *testing.T) {
	server := nodeProgram{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	const long = "an-alternative-name-of-many-letters"
	labtest.Run(t, server.node, "ip", "link", "property", "add", "dev", "router", "altname", "enp0s3", "altname", long)
	t.Setenv("HEADGATE_STATE", t.TempDir())
	const groups = "{limit: 10Mbit, groups: [{name: web, match: [{dport: 80}]}, {name: all, default: true}]}\n"
	document := func(dev string) string { return "---\nkind: Interface\ndev: \"" + dev + "\"\nout: " + groups }

	f := server.file(document("enp0s3"))
	if r := server.must("check", "-f", f); !strings.HasPrefix(r.out, "router, written as enp0s3 (") {
		t.Errorf("check: %q", r.out)
	}
	if r := server.must("apply", "-f", f); !strings.HasPrefix(r.out, "router: ") || !strings.Contains(r.err, ":2: enp0s3 is the device router") {
		t.Errorf("apply: %q, %q", r.out, r.err)
	}
	for _, dev := range []string{"router", "enp0s3", long, "enp*", "an-alt*"} {
		if r := server.must("plan", "-f", server.file(document(dev))); r.out != "router: up to date\n" {
			t.Errorf("plan of %s: %q", dev, r.out)
		}
	}
	const conn = "tcp 10.0.0.1:443 10.0.0.2:55000"
	for _, words := range [][]string{
		{"show", "--dev", long}, {"top", "--once", "--interval", "100ms", "--dev", "enp0s3"}, {"doctor", "enp0s3"}, {"init", "--dev", "enp0s3"}, {"init", "--speed", long + "=10Mbit"},
		{"assign", "web", "--dev", "enp0s3", "--conn", conn}, {"show", "assignments", "--dev", "enp0s3"}, {"explain", "--dev", long, "--packet", conn, "-f", f}, {"unassign", "--dev", long, "--conn", conn},
		{"clear", "--dev", long},
	} {
		r := server.must(words...)
		if !strings.Contains(r.err, " is the device router\n") || !strings.Contains(r.out, "router") {
			t.Errorf("headgate %s: %q, %q", strings.Join(words, " "), r.out, r.err)
		}
		if words[0] == "explain" && !strings.Contains(r.out, "assigned at run time: group web") {
			t.Errorf("explain: %q", r.out)
		}
	}
	if r := server.run("show", "--dev", "router"); r.code == exitOK {
		t.Errorf("the device was not cleared: %s", r.out)
	}
	for _, twice := range []string{document("enp0s3") + document("router"), document("router") + document(long), document(long) + document("enp0s3")} {
		for _, command := range []string{"check", "plan", "apply"} {
			if r := server.run(command, "-f", server.file(twice)); r.code != exitUsage || !strings.Contains(r.err, "is an alternative name of") {
				t.Errorf("%s of a file that names a device twice: exit %d: %s%s", command, r.code, r.out, r.err)
			}
		}
	}
	if r := server.run("__complete", "show", "--dev", ""); !strings.Contains(r.out, "enp0s3") {
		t.Errorf("shell completion lacks the alternative name: %q", r.out)
	}
}
