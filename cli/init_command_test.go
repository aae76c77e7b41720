package cli

import (
	"strings"
	"testing"
)

// TestInitPassesCheckAndPlan runs check and plan with a configuration that init writes.
func TestInitPassesCheckAndPlan(t *testing.T) {
	w := newWorld(t, "eth0")
	text := readFile("../hostsurvey/testdata/init.yaml")
	file := w.write("init.yaml", text)
	w.must("check", "-f", file)
	if r := w.must("plan", "-f", file); !strings.Contains(r.out, "974.5Mbit") {
		t.Errorf("plan of the written configuration:\n%s", r.out)
	}
	_, text, _ = strings.Cut(text, "\n# The speed of the link of veth0")
	file = w.write("comments.yaml", "# "+text)
	if r := w.run("check", "-f", file); r.code != exitUsage || !strings.Contains(r.err, "every line is a comment") {
		t.Errorf("check of a file with only comments: exit %d: %s", r.code, r.err)
	}
}

func TestInitUsage(t *testing.T) {
	w := newWorld(t)
	for args, want := range map[string]string{
		"--speed eth0":          "eth0=1Gbit",
		"--speed eth0=1000":     "100Mbit",
		"--speed eth0=0bit":     "rate is 0",
		"--output frob":         "table, json or yaml",
		"--dev x -f /dev/null/": "no such device",
	} {
		if r := w.run(append([]string{"init"}, strings.Fields(args)...)...); r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("init %s: exit %d: %s", args, r.code, r.err)
		}
	}
}

func TestInitDoesNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	if err := writeNew(dir+"/a.yaml", "mine"); err != nil {
		t.Fatal(err)
	}
	if err := writeNew(dir+"/a.yaml", "yours"); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a file that exists: %v", err)
	}
	if got := readFile(dir + "/a.yaml"); got != "mine" {
		t.Errorf("the file was overwritten with %q", got)
	}
}
