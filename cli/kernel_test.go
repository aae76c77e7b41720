package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/lab"
	"headgate/lab/labtest"
)

// inside is the program in a network namespace, with the real engines.
type inside struct {
	*testing.T
	node *lab.Node
}

func (i inside) run(args ...string) (r result) {
	i.Helper()
	var out, errs bytes.Buffer
	err := i.node.Do(func() error {
		r.code = Run(args, strings.NewReader(""), &out, &errs)
		return nil
	})
	if err != nil {
		i.Fatal(err)
	}
	r.out, r.err = out.String(), errs.String()
	return r
}

// must gives what a command that has to succeed printed.
func (i inside) must(args ...string) result {
	i.Helper()
	r := i.run(args...)
	if r.code != done {
		i.Fatalf("headgate %v: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r
}

// file writes a configuration.
func (i inside) file(text string) string {
	i.Helper()
	path := filepath.Join(i.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		i.Fatal(err)
	}
	return path
}

// TestPatternLeavesWhatIsOurs: client -- router -- server, whose one device
// "router" has an "in", and so an IFB.
func TestPatternLeavesWhatIsOurs(t *testing.T) {
	server := inside{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	f := server.file("kind: Interface\ndev: \"*\"\nin: {limit: 100Mbit, groups: [{name: all, default: true}]}\n")
	server.must("apply", "-f", f)
	if r := server.must("apply", "-f", f); r.out != "router: up to date\n" {
		t.Errorf("a pattern takes in more than the one device:\n%s", r.out)
	}
	server.must("clear", "--dev", "all")
}
