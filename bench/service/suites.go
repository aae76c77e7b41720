package service

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
)

// Chosen by this project.
const (
	// casesVariable is the environment variable with the folder of the scripts of reported cases: NAME.sh BINARY exits with 0 if
	// the case does not occur.
	casesVariable = "HEADGATE_CASES"
	// scriptTime is the time limit of such a script.
	scriptTime = 3 * time.Minute
)

// suite is a set of tests of the source tree that this program was built from.
type suite struct {
	name, what, tests string
	packages          []string
}

var suites = []suite{
	{"clients", "of the operations of the specification, and of its validators, the tests that fail with a generated Go, Python or TypeScript client", ".", []string{"./test/clients"}},
	{"journey", "of the tests that paste the README and the guides into a fresh machine, those that fail",
		"^(TestInstalled|TestInstalledRelay|TestReadmeService|TestServiceGuide|TestTour|TestProbeDocCommands|TestCollectiveRun|TestServiceRelay|TestReservationsGuide|TestLabGuide)$",
		[]string{"./packaging", "./test/e2e"}},
}

func suiteCases() (all []bench.Case) {
	for _, s := range suites {
		all = append(all, bench.Case{
			Name: s.name, Takes: bench.Takes(2*time.Minute, 10*time.Minute), Run: s.run,
			Claims: []bench.Claim{bench.NewClaim(s.name+"/all", s.what, violations)},
		})
	}
	return append(all, bench.Case{
		Name: "cases", Takes: bench.Takes(5*time.Minute, 15*time.Minute), Run: runScripts,
		Claims: []bench.Claim{bench.NewClaim("cases/all", "of the scripts in the folder "+casesVariable+", those that do not exit with 0", violations)},
	})
}

// sourceTree returns the folder of this module, from the present one upwards.
func sourceTree() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module headgate.dev/headgate\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this row needs Headgate's source: run the bench in its folder")
		}
	}
}

// run runs the tests, and counts those that fail or are skipped.
func (s suite) run(ctx context.Context, r *bench.Run) error {
	dir, err := sourceTree()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-json", "-timeout=30m", "-run=" + s.tests}, s.packages...)...)
	c.Dir = dir
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
	said := &bench.Tail{Keep: keptOutput}
	c.Stderr = said
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	sheet, id := r.Sheet(bench.Ours), s.name+"/all"
	failed, passed := 0, 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Action, Package, Test string
			Elapsed               float64
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" && e.Action != "fail" {
			continue
		}
		switch e.Action {
		case "pass":
			passed++
			if !strings.Contains(e.Test, "/") {
				sheet.Note(id, "%s: %.0f s", e.Test, e.Elapsed)
				r.Say("%s passed after %.0f s", e.Test, e.Elapsed)
			}
		case "fail", "skip":
			failed++
			sheet.Note(id, "%s: %s", cmp.Or(e.Test, e.Package), e.Action)
		}
	}
	err = c.Wait()
	if passed == 0 && failed == 0 {
		return fmt.Errorf("go test: %w: %s", err, said)
	}
	sheet.Set(id, float64(failed))
	sheet.Note(id, "%d tests and parts of tests passed", passed)
	return nil
}

// runScripts runs the scripts of reported cases.
func runScripts(ctx context.Context, r *bench.Run) error {
	dir := os.Getenv(casesVariable)
	if dir == "" {
		return fmt.Errorf("the folder with the scripts is unknown: set %s", casesVariable)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "*", "*.sh"))
	if err != nil {
		return err
	}
	scripts = slices.DeleteFunc(scripts, func(s string) bool { return filepath.Base(s) == "lib.sh" })
	if len(scripts) == 0 {
		return fmt.Errorf("%s has no scripts KIND/NAME.sh", dir)
	}
	sheet, failed := r.Sheet(bench.Ours), 0
	for _, script := range scripts {
		limited, cancel := context.WithTimeout(ctx, scriptTime)
		c := exec.CommandContext(limited, "bash", script, self)
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = 10 * time.Second
		began := time.Now()
		out, err := c.CombinedOutput()
		cancel()
		name := strings.TrimSuffix(filepath.Base(script), ".sh")
		r.Say("%s: %v after %.0f s", name, cmp.Or(err, errors.New("passed")), time.Since(began).Seconds())
		if err != nil {
			failed++
			last := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			sheet.Note("cases/all", "%s: %v: %s", name, err, last[len(last)-1])
		}
	}
	sheet.Set("cases/all", float64(failed))
	sheet.Note("cases/all", "%d scripts", len(scripts))
	return nil
}
