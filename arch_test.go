package headgate

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layer says what the packages under path may import of ours. The longest path
// decides. "x/..." is x and all below it.
type layer struct {
	path string
	may  []string
	why  string
}

var layers = []layer{
	{"unit", nil,
		"quantities are under everything: an import here would be a circle"},

	{"unit/rounded", []string{"unit"},
		"measured values are printed for people, and never read back"},
	{"group", []string{"unit"},
		"models are what is meant, not how it is done: they must be usable, and testable, without a kernel"},
	{"share", []string{"unit"},
		"allocation is a function from claims to rates: hosts and networks call the same one"},
	{"probe", []string{"unit", "probe"},
		"estimators are functions over samples: with sockets in them recorded traces would not replay"},
	{"probe/sim", []string{"unit", "probe", "lab/link"},
		"simulated paths are links of the lab's model, and nothing but tests and benches sends over them"},
	{"probe/sim/simtest", []string{"unit", "probe", "probe/sim", "lab/link"},
		"what tests of several estimators share names none of them"},
	{"probe/train", []string{"unit", "probe", "internal/..."},
		"sends and receives, and knows nothing of what is read from it"},
	{"probe/session", []string{"unit", "probe", "probe/train", "internal/..."},
		"two hosts that measure speak to each other: what is asked and why is not theirs to know"},
	{"probe/once", []string{"unit", "probe", "probe/measure", "probe/path", "probe/schedule", "probe/session"},
		"a measurement in a process of its own, for whoever starts one: which program that is, is not its concern"},
	{"probe/path", []string{"unit", "probe", "probe/capacity", "probe/tokenrate", "probe/limiter", "probe/available"},
		"the estimators in one answer, over samples like each of them"},
	{"probe/tune", []string{"unit", "probe", "probe/path"},
		"from an answer to a limit, on a host and in the service: what enforces it is not its concern"},
	{"probe/measure", []string{"unit", "probe", "probe/path", "probe/limiter", "probe/available", "probe/compare", "probe/session"},
		"the one place where estimators meet sessions: what is done with a report is not its concern"},
	{"probe/mesh", []string{"unit", "config", "probe", "probe/path", "probe/session", "probe/measure", "internal/wholefile"},
		"asks servers for measurements, and sends no trains"},
	{"probe/plots", []string{"probe", "probe/path", "internal/plot"},
		"pictures of samples: where they come from is not their concern"},
	{"probe/report", []string{"config", "probe", "probe/path", "probe/limiter", "probe/measure", "probe/mesh", "internal/text"},
		"results of measurements in words: it measures nothing"},
	{"probe/tune/device", []string{"unit", "group", "config", "probe", "probe/path", "probe/tokenrate", "probe/session", "probe/measure", "probe/tune", "shaper", "config/diff", "internal/route"},
		"measures through a device and reads its counters: how the limits are applied is passed to it"},
	{"collective", []string{"unit"},
		"the window law is a model: it runs on the clock of its readings"},
	{"collective/sockops", []string{"unit", "collective", "internal/..."},
		"reads and caps connections, and knows nothing of why"},
	{"collective/host", []string{"unit", "collective", "collective/sockops", "internal/..."},
		"the one place where the law meets real connections"},
	{"collective/service", []string{"collective", "collective/host", "collective/sockops", "metrics", "internal/text"},
		"the one place where sets, their loop and their metrics are joined: it decides nothing itself"},
	{"relay", []string{"unit", "relay/..."},
		"agents stand alone: their rates are set from outside"},
	{"fabric", []string{"unit", "fabric"},
		"topology and wire formats know nothing of what is done with them"},
	{"fabric/program", []string{"unit", "share", "fabric/..."},
		"where reservations become flows and meters, and the only such place"},

	{"config", []string{"unit", "group", "probe", "probe/schedule", "collective", "relay", "fabric/..."},
		"configuration gives models; what enforces them never sees the text"},
	{"config/summary", []string{"unit/rounded", "group", "config", "internal/text"},
		"a configuration in words: what enforces it is not its concern"},
	{"config/diff", []string{"group", "config", "internal/text"},
		"a comparison of configurations: which of them is in force is not its concern"},
	{"shaper", []string{"unit", "group", "usage"},
		"the border to enforcement is stated in the model's terms alone"},
	{"shaper/classifier", []string{"unit", "group", "shaper", "internal/..."},
		"both engines classify alike, so classification may know neither"},
	{"shaper/attach", []string{"unit", "group", "shaper", "shaper/classifier", "internal/..."},
		"both engines find and leave alone the same things, so what does it may know neither"},
	{"shaper/htb", []string{"unit", "group", "share", "shaper", "shaper/classifier", "shaper/attach", "internal/..."},
		"an engine knows no other engine, and no configuration"},
	{"shaper/quantum", []string{"unit", "group", "share", "shaper", "shaper/classifier", "shaper/attach", "internal/..."},
		"an engine knows no other engine, and no configuration"},
	{"shaper/shapertest", []string{"unit", "group", "share", "shaper", "lab/...", "internal/..."},
		"the suite that every engine passes names none"},
	{"shaper/engines", []string{"group", "config", "shaper", "shaper/classifier", "shaper/htb", "shaper/quantum"},
		"the one list of engines, held against a configuration: whoever uses them gets them as values"},
	{"explain", []string{"unit", "group", "config", "shaper"},
		"a packet's way is a function of states and rules: with a kernel in it no table could test it"},
	{"pending", []string{"group", "shaper", "internal/..."},
		"a change that waits for its confirmation: what applies it and rolls it back is passed to it"},
	{"doctor", []string{"unit", "unit/rounded", "group", "shaper", "shaper/attach", "collective/sockops", "internal/..."},
		"it tries what engines do, and gets the engine to try: no configuration, and no list of engines"},

	{"store", []string{"unit", "group", "fabric/...", "config", "probe/schedule"},
		"intent is kept, not acted on"},
	{"store/etcd", []string{"internal/pki", "internal/wholefile"},
		"one member of the store: what is kept in it is not its concern"},
	{"store/backend", []string{"config", "store", "store/etcd", "internal/wholefile"},
		"which etcd a controller uses, and that it is the same one as before: what is kept in it is not its concern"},
	{"store/storetest", []string{"store", "store/etcd"},
		"a real store for tests"},
	{"controller/controllertest", []string{"api/agents", "api/server", "agent/remote", "controller", "store", "internal/..."},
		"a real controller for tests: its agents speak the protocol and enforce nothing"},
	{"api/agents", []string{"group"},
		"what agents and controllers send each other is in nobody's terms but its own and those of groups"},
	{"api/local", []string{"internal/..."},
		"what a program says to its host's agent is small, and imported by tenants' programs"},
	{"agent/remote", []string{"unit", "group", "usage", "collective", "config", "api/client", "api/agents", "internal/..."},
		"the agent's side of the service, which enforces nothing"},
	{"agent/intent", []string{"group", "config", "shaper"},
		"which document is in force is a function of all documents: with files and sockets in it no table could test it"},
	{"agent/sets", []string{"unit", "collective/...", "internal/..."},
		"connection sets run beside the loop for devices, and know nothing of it"},
	{"usage", []string{"unit"},
		"what a group had is made of counters, wherever they are from"},
	{"agent/record", []string{"unit", "usage", "internal/wholefile"},
		"accounting is a function of what was counted"},
	{"api", nil,
		"the specification is text, from which server and clients are made"},
	{"api/client", nil,
		"a program that calls the API has nothing of the service in it"},
	{"api/server", []string{"unit", "group", "collective", "fabric/...", "store", "config", "probe", "probe/path", "probe/schedule", "probe/tune", "api", "api/client"},
		"the API speaks of models, and of what was measured; agent and controller tie them to enforcement"},
	{"api/login", []string{"api/client", "internal/pki", "internal/wholefile"},
		"a user's logins and a client: what is requested with it is not its concern"},
	{"api/host", []string{"unit", "group", "config", "shaper", "probe/path", "hostsurvey/placement", "api/client", "internal/sleep"},
		"a host of a service in the terms of its own commands, for clients: the service has no need of it"},
	{"metrics", []string{"unit", "group", "shaper", "usage", "collective/...", "relay", "fabric/...", "probe", "probe/path"},
		"metrics read state and change nothing"},
	{"agent", []string{"unit", "group", "config", "shaper", "api/local", "internal/..."},
		"the host's loop: it ties models to enforcement, and is driven: by whom is not its concern"},
	{"agent/service", []string{"unit", "group", "usage", "config", "shaper", "doctor", "pending", "metrics", "collective", "collective/host", "probe", "probe/once", "probe/schedule",
		"agent", "agent/intent", "agent/record", "agent/remote", "agent/sets", "api/agents", "internal/..."},
		"the one place where the loop, the service's side, the record, the sets and the metrics are joined: it decides nothing itself"},
	{"controller", []string{"unit", "group", "share", "config", "fabric/...", "probe", "probe/path", "probe/schedule", "store", "api/client", "api/server", "api/agents", "metrics", "usage", "web", "internal/..."},
		"the network's loop: it ties models to enforcement, and touches no host"},
	{"controller/service", []string{"unit", "config", "controller", "store", "store/etcd", "store/backend", "metrics", "internal/sdnotify"},
		"the one place where a controller, its store and its metrics are joined: it decides nothing itself"},
	{"web", nil,
		"the dashboard is a client of the API like any other"},

	{"hostsurvey", []string{"unit", "doctor", "probe/tune", "shaper", "internal/..."},
		"from what a machine has to the text of a configuration: it enforces nothing, and gets the doctor's findings"},
	{"hostsurvey/placement", []string{"unit", "group", "config", "internal/..."},
		"warnings are a function of a configuration and a machine: no engine, and no command, decides them"},
	{"internal", []string{"unit", "internal/..."},
		"how to speak to a kernel, whatever is said: no models"},

	{"lab/link", []string{"unit"},
		"a link is a function from arrivals to releases: with devices in it nothing could be held against its definition"},
	{"lab/report", []string{"lab", "lab/traffic", "unit/rounded", "internal/text"},
		"results of a run in words: what draws them on a screen is not its concern"},
	{"lab", []string{"unit", "lab/...", "internal/..."},
		"a lab is what the product is tried in: were it to use the product, it could not judge it"},
	{"demo", []string{"unit", "unit/rounded", "group", "config", "shaper", "lab/...", "bench", "view", "internal/..."},
		"it uses the service as an operator does, by commands and requests, so it may know neither agent nor controller"},
	{"demo/scenario", []string{"unit", "group", "share", "lab", "lab/traffic"},
		"what is shown is data, which tests hold against the model: nothing of it runs"},
	{"observe", []string{"group", "shaper", "agent"},
		"the state of this machine, for whoever shows or changes it: it gets engines and devices, and names neither"},
	{"rollout", []string{"group", "config", "config/diff", "observe", "pending", "shaper", "shaper/attach", "agent"},
		"one change of this machine, for a user: it gets engines and devices, and names neither"},
	{"view", []string{"unit", "unit/rounded", "group", "shaper", "usage", "collective", "collective/host", "probe", "lab/report", "view", "internal/text", "internal/sleep"},
		"it draws states that are passed to it: it reads no kernel and no service, and calls no command"},
	{"packaging", nil,
		"what is around the program; tests of it run what is installed"},
	{"bench", []string{"..."},
		"experiments may use all of it"},
	{"cli", []string{"..."},
		"the command line ties everything together"},
	{"test/e2e", nil,
		"it has only tests, of the whole program: what they share with other tests belongs in a package of its own"},
	{"test/clients", nil,
		"it has only tests, of generated clients: what they share with other tests belongs in a package of its own"},
	{"cmd", []string{"cli"},
		"a main function that can only call cli has nothing in it to test"},
}

// reserved are packages that only some may import, whatever their layer allows.
var reserved = []layer{
	{"cli", []string{"cmd/..."},
		"what another package needs of a command belongs in a package of its own"},
	{"view", []string{"cli", "demo"},
		"it draws for people: what a program needs of a state is in the state"},
	{"demo", []string{"cli"},
		"it shows the product, and no part of the product depends on it"},
	{"observe", []string{"cli", "rollout"},
		"what runs on its own reads devices in the agent's loop"},
	{"rollout", []string{"cli"},
		"what runs on its own changes devices in the agent's loop"},
	{"api/host", []string{"cli"},
		"it is a client, and no part of the service or of an agent"},
	{"cmd", nil,
		"a program is not a library"},
	{"store/storetest", nil,
		"only tests need a store of their own"},
	{"controller/controllertest", nil,
		"only tests need a controller of their own"},
	{"internal/golden", nil,
		"only tests compare their output with files"},
	{"lab", []string{"lab/...", "bench/...", "cli", "demo/...", "shaper/shapertest"},
		"namespaces and emulated links are for trying, and must not be in what runs in production"},
	{"shaper/engines", []string{"cli"},
		"a program chooses its engines, and passes them on"},
	{"agent/service", []string{"cli"},
		"what joins everything would tie everything to its user"},
	{"probe/report", []string{"cli"},
		"a measurement is reported by the command that measures"},
	{"collective/service", []string{"cli"},
		"what joins everything would tie everything to its user"},
	{"controller/service", []string{"cli"},
		"what joins everything would tie everything to its user"},
	{"lab/report", []string{"cli", "view"},
		"a run is reported by the command that runs it"},
	{"lab/link", []string{"lab/...", "bench/...", "cli", "shaper/shapertest", "probe/sim/..."},
		"it is what is tried with, and must not be in what runs in production"},
	{"probe/sim", []string{"bench/..."},
		"only tests and benches measure what is not there"},
	{"probe/sim/simtest", nil,
		"only tests need what it has"},
	{"bench", []string{"bench/...", "cli", "demo"},
		"experiments are not a part of the product"},
}

const module = "headgate.dev/headgate"

// TestImports holds the house's rule of who may import whom
// (docs/architecture.md). Tests may import what they like.
func TestImports(t *testing.T) {
	for pkg, imports := range packages(t) {
		own, ok := find(layers, pkg)
		if !ok {
			t.Errorf("package %s has no layer: add one to arch_test.go that says what it may import, and why", pkg)
			continue
		}
		for _, imp := range imports {
			if !allows(own.may, imp) && !within(imp, pkg) {
				t.Errorf("%s may not import %s: %s", pkg, imp, own.why)
			}
			if r, ok := find(reserved, imp); ok && !within(pkg, r.path) && !allows(r.may, pkg) {
				t.Errorf("%s may not be imported, as %s does: %s", imp, pkg, r.why)
			}
		}
	}
}

// TestCommandLineTouchesNoKernel: what speaks to the kernel belongs in a package of its own.
func TestCommandLineTouchesNoKernel(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./cli/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for imp := range strings.Lines(string(out)) {
		for _, kernel := range []string{"github.com/vishvananda/netlink", "github.com/mdlayher/netlink", "github.com/cilium/ebpf"} {
			if imp = strings.TrimSpace(imp); imp == kernel || strings.HasPrefix(imp, kernel+"/") {
				t.Errorf("cli imports %s", imp)
			}
		}
	}
}

// TestWithoutStore: what runs on hosts and in programs of tenants contains no client of the store.
func TestWithoutStore(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./api/client", "./api/login", "./api/local", "./agent/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dep := range strings.Lines(string(out)) {
		if strings.HasPrefix(dep, "go.etcd.io/") || strings.HasPrefix(dep, module+"/store") {
			t.Errorf("the client or the agent depends on %s", strings.TrimSpace(dep))
		}
	}
}

// packages gives our packages and what they import of ours, without the module's
// name.
func packages(t *testing.T) map[string][]string {
	out, err := exec.Command("go", "list", "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg, ours := strings.CutPrefix(words[0], module+"/")
		if !ours {
			continue
		}
		all[pkg] = nil
		for _, imp := range words[1:] {
			if imp, ours := strings.CutPrefix(imp, module+"/"); ours {
				all[pkg] = append(all[pkg], imp)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("go list names no package")
	}
	return all
}

// find is the layer with the longest path that pkg is within.
func find(list []layer, pkg string) (best layer, ok bool) {
	for _, l := range list {
		if within(pkg, l.path) && len(l.path) >= len(best.path) {
			best, ok = l, true
		}
	}
	return best, ok
}

func within(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

func allows(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		root, below := strings.CutSuffix(p, "...")
		root = strings.TrimSuffix(root, "/")
		return pkg == root || below && (root == "" || within(pkg, root))
	})
}
