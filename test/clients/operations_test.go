package clients

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/api"
	"headgate.dev/headgate/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main()
	code := m.Run()
	cleanUp()
	os.Exit(code)
}

// languages are the commands that check and run a program, each in the folder of its language that scripts/clients
// makes.
var languages = map[string]struct{ check, run []string }{
	"typescript": {check: []string{"scripts/tsc"}, run: []string{"bin/node", "operations.ts"}},
	"python":     {run: []string{"venv/bin/python", "operations.py"}},
}

// A program in each language calls every operation of the specification with a generated client. Each response has
// the status of success, and the client parses it.
func TestOperations(t *testing.T) {
	if testing.Short() {
		t.Skip("generates clients")
	}
	t.Parallel()
	spec, folder := specification(t), generate(t)
	for language, l := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(folder, language)
			if l.check != nil {
				run(t, root, nil, append(slices.Clone(l.check), dir)...)
			}
			s := start(t)
			out := run(t, dir, s.environment(t), l.run...)
			calls, err := parse(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults(spec, calls) {
				t.Error(fault)
			}
			t.Logf("%d calls of %d operations", len(calls), len(operations(spec)))
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// root is the folder of the repository.
const root = "../.."

// generated is the folder with the clients, or the error of the generators.
var generated = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headgate-clients")
	if err != nil {
		return "", err
	}
	cleanUp = func() { os.RemoveAll(dir) }
	c := exec.Command("scripts/clients", dir)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("scripts/clients: %w\n%s", err, out)
	}
	return dir, nil
})

var cleanUp = func() {}

// generate returns the folder with the clients, which are generated once.
func generate(t testing.TB) string {
	t.Helper()
	dir, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a command in a folder and returns its standard output.
func run(t testing.TB, dir string, environment []string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", strings.Join(command, " "), err, out, failed.String())
	}
	return string(out)
}

func specification(t testing.TB) *openapi3.T {
	t.Helper()
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// call is a call that a program printed: the operation in the spelling of its language, the status of the response,
// and why the client could not parse it.
type call struct {
	operation string
	status    int
	fault     string
}

// parse parses the output of a program.
func parse(out string) (calls []call, err error) {
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.SplitN(lines.Text()+"  ", " ", 3)
		status, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, fmt.Errorf("the program printed %q", lines.Text())
		}
		calls = append(calls, call{words[0], status, strings.TrimSpace(words[2])})
	}
	return calls, lines.Err()
}

// plain returns the name of an operation without what languages change: getHealth is get_health in Python.
func plain(operation string) string { return strings.ToLower(strings.ReplaceAll(operation, "_", "")) }

// operations returns the operations of a specification by their plain names.
func operations(spec *openapi3.T) map[string]*openapi3.Operation {
	out := map[string]*openapi3.Operation{}
	for _, item := range spec.Paths.Map() {
		for _, o := range item.Operations() {
			out[plain(o.OperationID)] = o
		}
	}
	return out
}

// faults returns what is wrong with the calls of a program.
func faults(spec *openapi3.T, calls []call) (out []string) {
	all := operations(spec)
	called := map[string]bool{}
	for _, c := range calls {
		o := all[plain(c.operation)]
		switch {
		case o == nil:
			out = append(out, fmt.Sprintf("%s is not an operation of the specification", c.operation))
			continue
		case c.fault != "":
			out = append(out, fmt.Sprintf("%s: status %d: %s", c.operation, c.status, c.fault))
		case c.status < 200 || c.status > 299 || o.Responses.Status(c.status) == nil:
			out = append(out, fmt.Sprintf("%s: status %d is not one of success in the specification", c.operation, c.status))
		}
		called[plain(c.operation)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !called[name] {
			out = append(out, all[name].OperationID+" is not called")
		}
	}
	return out
}

// An operation that is not called, fails or is not parsed is a fault, also one that is added to the specification.
func TestFaults(t *testing.T) {
	t.Parallel()
	spec := specification(t)
	calls := func(change func(*call)) (out []call) {
		for _, o := range operations(spec) {
			for status := range o.Responses.Map() {
				if n, err := strconv.Atoi(status); err == nil && n < 300 {
					c := call{operation: o.OperationID, status: n}
					change(&c)
					out = append(out, c)
				}
			}
		}
		return out
	}
	change := func(fault func(*call)) []call {
		return calls(func(c *call) {
			if c.operation == "getHealth" {
				fault(c)
			}
		})
	}
	check := func(name, want string, calls []call) {
		t.Helper()
		if got := strings.Join(faults(spec, calls), "\n"); got != want {
			t.Errorf("%s: the faults are %q, want %q", name, got, want)
		}
	}
	all := change(func(*call) {})
	if len(all) < 50 {
		t.Errorf("the specification has %d operations, want at least 50", len(all))
	}
	check("all are called", "", all)
	check("in Python's spelling", "", change(func(c *call) { c.operation = "get_health" }))
	check("one is not called", "getHealth is not called", slices.DeleteFunc(slices.Clone(all), func(c call) bool { return c.operation == "getHealth" }))
	check("it fails", "getHealth: status 503 is not one of success in the specification", change(func(c *call) { c.status = 503 }))
	check("another success", "getHealth: status 204 is not one of success in the specification", change(func(c *call) { c.status = 204 }))
	check("not parsed", "getHealth: status 200: no version", change(func(c *call) { c.fault = "no version" }))
	check("unknown", "getWealth is not an operation of the specification\ngetHealth is not called", change(func(c *call) { c.operation = "getWealth" }))
	spec.Paths.Set("/v1/added", &openapi3.PathItem{Get: &openapi3.Operation{OperationID: "getAdded", Responses: openapi3.NewResponses()}})
	check("one is added", "getAdded is not called", all)

	got, err := parse("getHealth 200\nget_host 500 it is wrong\n")
	if err != nil || !slices.Equal(got, []call{{"getHealth", 200, ""}, {"get_host", 500, "it is wrong"}}) {
		t.Errorf("the calls are %v, %v", got, err)
	}
	if _, err := parse("Generating\n"); err == nil {
		t.Error("a line that is not a call is accepted")
	}
}

// The specification is valid, with its examples.
func TestSpecification(t *testing.T) {
	t.Parallel()
	if err := specification(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
}
