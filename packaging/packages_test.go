package packaging

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// older and newer are the versions that are built from this tree.
const older, newer = "1.2.3", "1.3.0"

// released has the directories of the versions that have been built.
var released struct {
	sync.Mutex
	dirs map[string]string
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range released.dirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// release builds packages of this tree as "make release" does, for the local architecture, and returns their
// directory.
func release(t testing.TB, version string) (dir string) {
	t.Helper()
	released.Lock()
	defer released.Unlock()
	if dir := released.dirs[version]; dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp("", "headgate-release-")
	if err != nil {
		t.Fatal(err)
	}
	if released.dirs == nil {
		released.dirs = map[string]string{}
	}
	released.dirs[version] = dir
	run(t, "../scripts/binary", version, runtime.GOARCH, binary(dir, version))
	run(t, "../scripts/packages", version, dir)
	return dir
}

// binary returns the path of the program of a version.
func binary(dir, version string) string {
	return filepath.Join(dir, "headgate-"+version+"-linux-"+runtime.GOARCH)
}

// run runs a command that has to succeed, and returns its output.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// packages returns the four packages in a directory.
func packages(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(all) != 4 {
		t.Fatalf("%s has the packages %q, error %v, want four packages", dir, all, err)
	}
	return all
}

// Lintian reports no problem, and a second build of the packages has the same bytes.
func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds packages: not with -short")
	}
	lintian, err := exec.LookPath("lintian")
	if err != nil {
		t.Skip("lintian is not installed: apt-get install lintian")
	}
	dir := release(t, older)
	all := packages(t, dir)
	if out, err := exec.Command(lintian, append([]string{"--fail-on", "error,warning"}, all...)...).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	again := t.TempDir()
	if err := os.Link(binary(dir, older), binary(again, older)); err != nil {
		t.Fatal(err)
	}
	run(t, "../scripts/packages", older, again)
	for i, file := range packages(t, again) {
		a, err1 := os.ReadFile(all[i])
		b, err2 := os.ReadFile(file)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs in a second build: %v %v", filepath.Base(file), err1, err2)
		}
	}
}

// The program is statically linked, and a build in another directory has the same bytes.
func TestBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: not with -short")
	}
	program := binary(release(t, older), older)
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC }) {
		t.Error("the program is not statically linked")
	}
	elsewhere := t.TempDir()
	run(t, "sh", "-ec", `cd .. && git ls-files -z | tar -c --null -T - | tar -x -C "$0"`, elsewhere)
	again := filepath.Join(elsewhere, "again")
	run(t, filepath.Join(elsewhere, "scripts/binary"), older, runtime.GOARCH, again)
	a, err1 := os.ReadFile(program)
	b, err2 := os.ReadFile(again)
	if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
		t.Errorf("the program built in another directory differs: %v %v", err1, err2)
	}
}
