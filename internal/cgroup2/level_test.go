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
		"the root":                    {"/", "/", 1, firstNamespace, 0, nil},
		"below it":                    {"/", "/a.slice/b.service", 1, firstNamespace, 2, nil},
		"written otherwise":           {"/", "a.slice//b.service/", 1, firstNamespace, 2, nil},
		"a part is mounted":           {"/docker/abc", "/", 77, firstNamespace, 2, nil},
		"below the part":              {"/docker/abc", "/a", 77, firstNamespace, 3, nil},
		"a namespace":                 {"/", "/a", 77, other, 0, ErrPart},
		"a part in a namespace":       {"/docker/abc", "/a", 77, other, 0, ErrPart},
		"around a namespace's root":   {"/..", "/a", 77, other, 0, ErrPart},
		"all of it, in a namespace":   {"/../..", "/a/b/c", 1, other, 3, nil},
		"nobody knows what namespace": {"/", "/a", 77, "", 0, ErrPart},
	} {
		got, err := mounted{root: c.root}.level(c.path, c.id, c.namespace)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: level %d, %v; want %d, %v", name, got, err, c.want, c.err)
		}
	}
}

// The same on this kernel: a part of the hierarchy is mounted, and then a namespace is.
func TestLevelInAPart(t *testing.T) {
	if at := os.Getenv("HEADGATE_LEVEL_OF"); at != "" { // below, inside
		level, err := Level(at)
		if errors.Is(err, ErrPart) {
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
		t.Skipf("this is a part itself: level %d, %v", level, err)
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
