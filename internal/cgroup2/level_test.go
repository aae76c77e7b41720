package cgroup2

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestLevel(t *testing.T) {
	const other = "cgroup:[4026532000]"
	for name, c := range map[string]struct {
		root, path string
		id         uint64
		namespace  string
		want       uint32
		err        error
	}{
		"the root":                            {"/", "/", 1, firstNamespace, 0, nil},
		"below the root":                      {"/", "/a.slice/b.service", 1, firstNamespace, 2, nil},
		"unclean path":                        {"/", "a.slice//b.service/", 1, firstNamespace, 2, nil},
		"a part is mounted":                   {"/docker/abc", "/", 77, firstNamespace, 2, nil},
		"below the part":                      {"/docker/abc", "/a", 77, firstNamespace, 3, nil},
		"a namespace":                         {"/", "/a", 77, other, 0, ErrPartialHierarchy},
		"a part in a namespace":               {"/docker/abc", "/a", 77, other, 0, ErrPartialHierarchy},
		"outside a namespace's root":          {"/..", "/a", 77, other, 0, ErrPartialHierarchy},
		"the whole hierarchy, in a namespace": {"/../..", "/a/b/c", 1, other, 3, nil},
		"unknown namespace":                   {"/", "/a", 77, "", 0, ErrPartialHierarchy},
	} {
		got, err := mounted{root: c.root}.level(c.path, c.id, c.namespace)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: level %d, %v; want %d, %v", name, got, err, c.want, c.err)
		}
	}
}

// The same on this kernel: with a part of the hierarchy mounted, and in a cgroup namespace.
func TestLevelInAPart(t *testing.T) {
	if at := os.Getenv("HEADGATE_LEVEL_OF"); at != "" { // set for the child process below
		level, err := Level(at)
		if errors.Is(err, ErrPartialHierarchy) {
			t.Log("answer: a part")
		} else {
			t.Logf("answer: %d %v", level, err)
		}
		return
	}
	root, err := Mount()
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and the cgroup v2 hierarchy")
	}
	if level, err := Level("/a/b"); level != 2 || err != nil {
		t.Skipf("only a part of the hierarchy is mounted: level %d, %v", level, err)
	}
	outer := filepath.Join(root, "headgate-level-"+strconv.Itoa(os.Getpid()))
	inner := filepath.Join(outer, "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Remove(inner), os.Remove(outer)); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct{ script, want string }{
		"a part is mounted": {`unshare -m sh -c 'mount --bind "$1" /mnt && umount -l "$0" && "$2" -test.run=^TestLevelInAPart$ -test.v' "$0" "$1" "$2"`, "answer: 3 <nil>"},
		"a namespace":       {`echo $$ >"$1/cgroup.procs"; unshare -C -m sh -c 'umount -l "$0" && mount -t cgroup2 none /mnt && "$2" -test.run=^TestLevelInAPart$ -test.v' "$0" "$1" "$2"`, "answer: a part"},
	} {
		cmd := exec.Command("sh", "-c", c.script, root, inner, os.Args[0])
		cmd.Env = append(os.Environ(), "HEADGATE_LEVEL_OF=/a")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, c.want, out)
		}
	}
}
