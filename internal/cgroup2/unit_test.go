package cgroup2

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUnitIn(t *testing.T) {
	root := t.TempDir()
	for _, at := range []string{
		// Cgroups with names of system units that are not system units, earlier in the alphabet.
		"docker/abc/system.slice/nginx.service",
		"a.service/nginx.service",
		"a.service/system.slice/nginx.service",
		"machine.slice/machine-guest.scope/system.slice/nginx.service",
		"user.slice/user-1000.slice/user@1000.service/app.slice/mine.service",
		"user.slice/user-1000.slice/user@1000.service/nginx.service",
		"system.slice/a.service/nginx.service",
		"a.slice/a-b.slice/deep.service",
		"b.slice/deep.service",

		"init.scope",
		"machine.slice/guest.service",
		"system.slice/nginx.service",
		"system.slice/system-getty.slice/getty@tty1.service",
	} {
		if err := os.MkdirAll(filepath.Join(root, at), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file.service"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"nginx.service":      "/system.slice/nginx.service",
		"deep.service":       "/b.slice/deep.service", // the shortest path
		"getty@tty1.service": "/system.slice/system-getty.slice/getty@tty1.service",
		"guest.service":      "/machine.slice/guest.service",
		"user@1000.service":  "/user.slice/user-1000.slice/user@1000.service",
		"a-b.slice":          "/a.slice/a-b.slice",
		"init.scope":         "/init.scope",
		"a.service":          "/a.service",
		"-.slice":            "/",
		"mine.service":       "", // a unit of a user's systemd
		"abc":                "", // not a unit
		"file.service":       "",
		"gone.service":       "",
		"":                   "",
	} {
		if got := unitIn(root, name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
