package cli

import (
	"strings"
	"testing"

	"headgate.dev/headgate/internal/golden"
)

// explain --demand and --busy print the expected rates of a file's groups, or of those in force on a device.
func TestExplainDemand(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	f := w.write("eth0.yaml", strings.ReplaceAll(readFile("testdata/eth0.yaml"), ", {cgroup: /system.slice/nginx.service}", ""))
	var out strings.Builder
	for _, args := range []string{"--demand tenant/web=max --demand web=60Mbit --demand backup=120Mbit --demand storage=400Mbit", "--busy --demand rest=0bit", "--busy --direction in"} {
		out.WriteString("$ headgate explain " + args + "\n" + w.must(append([]string{"explain", "-f", f}, strings.Fields(args)...)...).out)
	}
	golden.Compare(t, "testdata/explain_demand.txt", out.String())
	golden.Compare(t, "testdata/explain_demand.json", w.must("explain", "-f", f, "--busy", "--direction", "in", "-o", "json").out)

	w.must("apply", "-f", f)
	if file, device := w.must("explain", "-f", f, "--busy").out, w.must("explain", "--dev", "eth0", "--busy").out; file != device {
		t.Errorf("of the file:\n%sin force:\n%s", file, device)
	}
	two := w.write("two.yaml", document("eth0", "1Gbit")+"---\n"+document("eth1", "2Gbit"))
	if r := w.must("explain", "-f", two, "--dev", "eth1", "--busy"); !strings.Contains(r.out, "eth1, expected rates\n  out: limit 2Gbit") {
		t.Errorf("of one of two devices: %s", r.out)
	}
	quantum := w.write("quantum.yaml", document("eth0", "1Gbit")+"engine: quantum\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-f " + two, exitUsage, "--dev is missing: the configuration has eth0, eth1"},
		{"-f " + two + " --dev eth7", exitFailed, "eth7 is not in the configuration"},
		{"-f " + two + " --dev eth0 --direction in", exitFailed, "eth0 has no limit in the direction in"},
		{"-f " + f + " --demand wbe=1Mbit", exitUsage, `there is no group "wbe"; it has storage, tenant/web,`},
		{"-f " + f + " --demand tenant=1Mbit", exitUsage, "tenant is a parent group"},
		{"-f " + f + " --demand backup=40", exitUsage, "--demand: backup=40: "},
		{"-f " + f + " --demand backup=1Mbit --demand backup=max", exitUsage, "group backup has two demands"},
		{"-f " + f + " --dev eth0 --direction up", exitUsage, "is not a direction"},
		{"-f " + quantum, exitFailed, "engine quantum, which lends first come, first served"},
	} {
		if r := w.run(append([]string{"explain", "--busy"}, strings.Fields(c.args)...)...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s%s", c.args, r.code, c.code, c.want, r.err, r.out)
		}
	}
}
