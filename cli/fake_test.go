package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/store/storetest"
	"headgate.dev/headgate/unit"
)

// fakeEnv makes the test binary run as headgate, with a fake kernel in the directory
// that the variable names. "apply --confirm-within" starts the program a second time.
const fakeEnv = "HEADGATE_TEST_KERNEL"

func TestMain(m *testing.M) {
	storetest.Main()
	if dir := os.Getenv(fakeEnv); dir != "" {
		a := fakeApp(dir)
		a.in, a.out, a.err = os.Stdin, os.Stdout, os.Stderr
		os.Exit(a.run(os.Args[1:]))
	}
	// Parallel tests spend most of their time waiting, so 4 run at once on any machine.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func fakeApp(dir string) *app {
	return &app{
		engines: map[group.Engine]shaper.Shaper{
			group.HTB: fakeShaper{dir, group.HTB}, group.Quantum: fakeShaper{dir, group.Quantum},
		},
		devices: func() ([]string, error) { return strings.Fields(readFile(filepath.Join(dir, "devices"))), nil },
		speed: func(dev string) (unit.Rate, bool) {
			r, err := unit.ParseRate(readFile(filepath.Join(dir, dev+".speed")))
			return r, err == nil
		},
		foreignPrograms: func(string) ([2][]string, error) { return [2][]string{}, nil },
		state:           filepath.Join(dir, "state"),
	}
}

// fakeShaper stores plans in files, so that several processes share one fake
// kernel. A file DEV.foreign, DEV.forbidden or DEV.broken makes its calls fail.
type fakeShaper struct {
	dir    string
	engine group.Engine
}

type fakeDevice struct {
	Plan     shaper.Plan
	Assigned []shaper.Assignment
	Writes   int
}

func (f fakeShaper) file(dev, what string) string { return filepath.Join(f.dir, dev+"."+what) }

func (f fakeShaper) fails(dev string) error {
	switch {
	case exists(f.file(dev, "forbidden")):
		return fmt.Errorf("%s: %w", dev, shaper.ErrPermission)
	case exists(f.file(dev, "foreign")):
		return fmt.Errorf("%s %w: qdisc tbf 8001: root", dev, shaper.ErrForeign)
	case !strings.Contains(" "+readFile(filepath.Join(f.dir, "devices"))+" ", " "+dev+" "):
		return fmt.Errorf("%s: %w", dev, shaper.ErrNoDevice)
	}
	return nil
}

func (f fakeShaper) load(dev string) (d fakeDevice, ok bool) {
	text, err := os.ReadFile(f.file(dev, string(f.engine)))
	return d, err == nil && json.Unmarshal(text, &d) == nil
}

func (f fakeShaper) save(dev string, d fakeDevice) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(f.file(dev, string(f.engine)), text, 0o600)
}

func (f fakeShaper) Diff(p shaper.Plan) ([]shaper.Change, error) {
	if err := f.fails(p.Dev); err != nil {
		return nil, err
	}
	now, ok := f.load(p.Dev)
	old, _ := json.Marshal(now.Plan)
	wanted, _ := json.Marshal(p)
	switch {
	case !ok:
		return []shaper.Change{{Verb: "add", Object: "groups", Detail: p.Out.Limit.String()}}, nil
	case !bytes.Equal(old, wanted):
		return []shaper.Change{{Verb: "change", Object: "groups", Detail: p.Out.Limit.String()}}, nil
	}
	return nil, nil
}

func (f fakeShaper) Apply(p shaper.Plan) ([]shaper.Change, error) {
	changes, err := f.Diff(p)
	if err != nil || len(changes) == 0 {
		return changes, err
	}
	if exists(f.file(p.Dev, "broken")) {
		return nil, fmt.Errorf("%s: the kernel refused", p.Dev)
	}
	d, _ := f.load(p.Dev)
	d.Plan, d.Writes = p, d.Writes+1
	return changes, f.save(p.Dev, d)
}

func (f fakeShaper) Observe(dev string) (shaper.State, error) {
	if err := f.fails(dev); err != nil && !errors.Is(err, shaper.ErrForeign) {
		return shaper.State{}, err
	}
	d, ok := f.load(dev)
	if !ok {
		return shaper.State{}, fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	s := shaper.State{Dev: dev, Engine: f.engine, Plan: d.Plan, At: time.Unix(1700000000, 0).UTC()}
	direction := func(t *group.Tree) *shaper.DirectionState {
		if t == nil {
			return nil
		}
		ds := &shaper.DirectionState{
			Control: shaper.GroupState{Class: "1:2"}, RuleHits: make([]uint64, len(t.Rules)), Assigned: len(d.Assigned),
		}
		for i, n := range t.Nodes {
			ds.Groups = append(ds.Groups, shaper.GroupState{
				Path: n.Path, Class: fmt.Sprintf("1:%x", 16+i), Guarantee: n.Guarantee, Ceiling: n.Ceiling,
				Bytes: 1536 << (10 * i), Packets: uint64(1000 * i), QueueDelay: 240 * time.Microsecond,
			})
		}
		return ds
	}
	s.Out, s.In = direction(d.Plan.Out), direction(d.Plan.In)
	return s, nil
}

func (f fakeShaper) Assign(dev string, a []shaper.Assignment) error {
	d, ok := f.load(dev)
	if !ok {
		return fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	d.Assigned = append(d.Assigned, a...)
	return f.save(dev, d)
}

func (f fakeShaper) Unassign(dev string, _ []shaper.Conn) error {
	d, ok := f.load(dev)
	if !ok {
		return fmt.Errorf("%s %w", dev, shaper.ErrNotShaped)
	}
	d.Assigned = nil
	return f.save(dev, d)
}

func (f fakeShaper) Assigned(dev string, c shaper.Conn) (string, error) {
	d, _ := f.load(dev)
	for _, a := range d.Assigned {
		if a.Conn == c {
			return a.Group, nil
		}
	}
	return "", nil
}

func (f fakeShaper) Assignments(dev string) ([]shaper.Assignment, error) {
	d, _ := f.load(dev)
	return d.Assigned, nil
}

func (f fakeShaper) Clear(dev string) error {
	if err := f.fails(dev); err != nil && !errors.Is(err, shaper.ErrForeign) && !errors.Is(err, shaper.ErrNoDevice) {
		return err
	}
	err := os.Remove(f.file(dev, string(f.engine)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readFile(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// testEnv is a test fixture: a fake kernel with devices, a directory of files, and methods
// that run the program with them.
type testEnv struct {
	*testing.T
	dir string
}

func newWorld(t *testing.T, devices ...string) testEnv {
	w := testEnv{t, t.TempDir()}
	w.write("devices", strings.Join(devices, " "))
	return w
}

// write creates a file and returns the path.
func (w testEnv) write(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// config writes a configuration with one group and this limit for dev, and returns the path.
func (w testEnv) config(dev, limit string) string {
	w.Helper()
	return w.write("eth.yaml", document(dev, limit))
}

func document(dev, limit string) string {
	return fmt.Sprintf("kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\n", dev, limit)
}

type result struct {
	code     int
	out, err string
}

func (w testEnv) run(args ...string) result {
	w.Helper()
	return w.runWith("", args...)
}

func (w testEnv) runWith(stdin string, args ...string) result {
	w.Helper()
	var out, stderr bytes.Buffer
	a := fakeApp(w.dir)
	a.in, a.out, a.err = strings.NewReader(stdin), &out, &stderr
	a.env = []string{fakeEnv + "=" + w.dir}
	code := a.run(args)
	// The directory differs between runs, so it is removed from the output.
	clean := strings.NewReplacer(w.dir+"/", "")
	return result{code, clean.Replace(out.String()), clean.Replace(stderr.String())}
}

// must runs the program and fails the test if the exit code is not 0.
func (w testEnv) must(args ...string) result {
	w.Helper()
	r := w.run(args...)
	if r.code != exitOK {
		w.Fatalf("headgate %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// limit returns the limit in force on a device ("" if the device has none) and the
// number of writes to the device.
func (w testEnv) limit(dev string) (limit string, writes int) {
	for _, e := range []group.Engine{group.HTB, group.Quantum} {
		if d, ok := (fakeShaper{w.dir, e}).load(dev); ok {
			return d.Plan.Out.Limit.String(), d.Writes
		}
	}
	return "", 0
}
