package headgate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program outside of this tree imports the client, and contains no part of the service.
func TestProgramOutside(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("examples/tenant/go")); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "transfer")
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "headgate.dev/headgate=" + here}, // there is no network
		{"build", "-o", binary, "."},
	} {
		c := exec.Command("go", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	c := exec.Command("go", "list", "-deps", ".")
	c.Dir = dir
	deps, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	client := false
	for dep := range strings.Lines(string(deps)) {
		dep = strings.TrimSpace(dep)
		switch ours, is := strings.CutPrefix(dep, module+"/"); {
		case strings.HasPrefix(dep, "go.etcd.io/"):
			t.Errorf("the program contains %s", dep)
		case ours == "api/client":
			client = true
		case is && ours != "unit" && ours != "api/local" && !strings.HasPrefix(ours, "internal/") && !strings.HasPrefix(ours, "examples/"):
			t.Errorf("the program contains %s", dep)
		}
	}
	if !client {
		t.Error("the program does not use the client")
	}
}
