package headgate

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layer lists which packages of this module the packages under path may import, and why no others. If several
// paths match a package, the longest decides. "x/..." is x and all packages below it.
type layer struct {
	path string
	may  []string
	why  string
}

var layers = []layer{
	{"unit", nil,
		"almost every package imports unit, so an import of ours could be an import cycle"},

	{"unit/rounded", []string{"unit"},
		"the product and the lab both format values with it, so an import of either would make one depend on the other"},
	{"group", []string{"unit"},
		"the model must be usable and testable without a kernel, which an import of enforcement would prevent"},
	{"share", []string{"unit"},
		"shaper/quantum, the demo and benches call the same allocation, so an import of one of them would be an import cycle"},
	{"share/sharetest", []string{"unit", "share"},
		"tests of schemes and the bench run the same scenarios, and an import of either would be an import cycle"},
	{"probe", []string{"unit", "probe"},
		"estimators must run on recorded samples, and an estimator that used sockets could not be tested by replay of a log"},
	{"probe/sim", []string{"unit", "probe", "lab/link"},
		"simulations run in virtual time and are reproducible, which an import of sockets or namespaces would prevent"},
	{"probe/sim/simtest", []string{"unit", "probe", "probe/sim", "lab/link"},
		"the tests of all estimators use it, so an import of one estimator would make the tests of the others depend on it"},
	{"probe/train", []string{"unit", "probe", "internal/..."},
		"it sends trains for all estimators, so an import of one estimator would tie it to that method"},
	{"probe/session", []string{"unit", "probe", "probe/train", "internal/..."},
		"the protocol carries the trains of all estimators, so an import of one estimator would tie it to that method"},
	{"probe/once", []string{"unit", "probe", "probe/measure", "probe/path", "probe/schedule", "probe/session", "internal/peerauth"},
		"agents and commands both start measurements with it, so an import of either would tie it to that program"},
	{"probe/path", []string{"unit", "probe", "probe/capacity", "probe/tokenrate", "probe/limiter", "probe/available", "probe/credits"},
		"it must combine the estimators over recorded samples as well, which an import of sockets would prevent"},
	{"probe/credits", []string{"unit", "probe", "probe/tokenrate"},
		"it must read recorded samples as well, which an import of sockets would prevent"},
	{"probe/tune", []string{"unit", "probe", "probe/path"},
		"hosts and the API server propose limits with it, so an import of an engine would make the server depend on enforcement"},
	{"probe/measure", []string{"unit", "probe", "probe/path", "probe/limiter", "probe/available", "probe/compare", "probe/session"},
		"probe/mesh, probe/once and probe/tune/device import it, so an import of one of them would be an import cycle"},
	{"probe/mesh", []string{"unit", "config", "probe", "probe/path", "probe/session", "probe/measure", "internal/peerauth", "internal/wholefile"},
		"the measuring servers send the trains, and a train sent by this package would bypass the caps of their sessions"},
	{"probe/plots", []string{"probe", "probe/path", "internal/plot"},
		"samples come from logs, simulations and networks, so an import of one source would limit the plots to it"},
	{"probe/report", []string{"config", "probe", "probe/path", "probe/limiter", "probe/measure", "probe/mesh", "internal/text"},
		"tables are tested with fixed results, which would be impossible if the package measured"},
	{"probe/tune/device", []string{"unit", "group", "config", "probe", "probe/path", "probe/tokenrate", "probe/session", "probe/measure", "probe/tune", "shaper", "config/diff", "internal/route"},
		"the caller passes the function that applies limits, so an import of an engine would limit tuning to that engine"},
	{"collective", []string{"unit"},
		"the window law is tested in virtual time, which an import of sockets or of the kernel's clock would prevent"},
	{"collective/sockops", []string{"unit", "collective", "internal/..."},
		"collective/host imports it to read and cap connections, so an import of the control loop would be an import cycle"},
	{"collective/host", []string{"unit", "unit/rounded", "collective", "collective/sockops", "internal/..."},
		"agents and commands both run this loop, so an import of either would tie it to that program"},
	{"collective/service", []string{"collective", "collective/host", "collective/sockops", "metrics", "internal/text"},
		"it joins the loop, the kernel's table and metrics, and decisions made here could be tested only with all of them running"},
	{"relay", []string{"unit", "relay/..."},
		"relay agents run alone and get their rates from outside, so an import of another part would have to run with them"},
	{"relay/host", []string{"unit", "relay/...", "internal/..."},
		"metrics and views import it to read its status, so an import of either would be an import cycle"},
	{"fabric", []string{"unit", "fabric"},
		"config, store and the API use topologies and wire formats, so an import of one of them would be an import cycle"},
	{"fabric/reserve/cycle", []string{"unit", "usage", "share", "fabric", "fabric/reserve"},
		"it is tested in virtual time with points in memory, which an import of switches or agents would prevent"},
	{"fabric/openflow/session", []string{"fabric/openflow"},
		"it carries the messages of every user of switches, so an import of one of them would be an import cycle"},
	{"fabric/openflow/pipeline", []string{"fabric/openflow"},
		"the product and the switch in memory execute flows with it, so an import of either would make one depend on the other"},
	{"fabric/openflow/oftest", []string{"unit", "fabric/openflow", "fabric/openflow/pipeline"},
		"the tests of all users of switches run against it, so an import of one of them would be an import cycle"},
	{"fabric/openflow/judge", []string{"fabric/openflow"},
		"the codec's tests compare it with other programs, so an import of a user of the codec would be an import cycle"},
	{"fabric/live", []string{"unit", "fabric/...", "internal/relaylldp"},
		"it is tested in virtual time with switches in memory, which an import of a store or a controller would prevent"},
	{"fabric/trace", []string{"fabric/..."},
		"traces are tested with tables of switches, which an import that reads switches would prevent"},
	{"fabric/program", []string{"unit", "share", "fabric/..."},
		"reservations become flows and meters in a function, which could not be tested alone if it imported a store or a controller"},

	{"config", []string{"unit", "group", "probe", "probe/schedule", "collective", "relay", "fabric/..."},
		"configurations are parsed and validated without a kernel, which an import of an engine would prevent"},
	{"config/summary", []string{"unit/rounded", "group", "config", "internal/text"},
		"a configuration is summarised on any machine, which an import of enforcement would prevent"},
	{"config/diff", []string{"group", "config", "internal/text"},
		"any two configurations can be compared, and an import of devices would limit the comparison to those in force"},
	{"shaper", []string{"unit", "group", "usage"},
		"every engine imports this interface, so an import of an engine would be an import cycle"},
	{"shaper/classifier", []string{"unit", "group", "shaper", "internal/..."},
		"both engines import it, so an import of an engine would be an import cycle"},
	{"shaper/attach", []string{"unit", "group", "shaper", "shaper/classifier", "internal/..."},
		"both engines import it, so an import of an engine would be an import cycle"},
	{"shaper/htb", []string{"unit", "unit/rounded", "group", "share", "shaper", "shaper/classifier", "shaper/attach", "internal/..."},
		"an engine that imported another engine or the configuration could not be tested or replaced alone"},
	{"shaper/quantum", []string{"unit", "group", "share", "shaper", "shaper/classifier", "shaper/attach", "internal/..."},
		"an engine that imported another engine or the configuration could not be tested or replaced alone"},
	{"shaper/shapertest", []string{"unit", "group", "share", "shaper", "lab/...", "internal/..."},
		"every engine must pass this suite, and an import of one engine would let the suite depend on details of that engine"},
	{"shaper/engines", []string{"group", "config", "shaper", "shaper/classifier", "shaper/htb", "shaper/quantum"},
		"several commands use the list and pass engines on as values, so an import of a caller would tie the list to that caller"},
	{"explain", []string{"unit", "unit/rounded", "group", "share", "usage", "config", "shaper", "internal/text"},
		"explanations are tested with tables of states and rules, which an import of the kernel's interfaces would prevent"},
	{"pending", []string{"group", "shaper", "internal/..."},
		"the caller passes the functions that apply and roll back, so an import of an engine would limit the rollback to that engine"},
	{"doctor", []string{"unit", "unit/rounded", "group", "shaper", "shaper/attach", "collective/sockops", "fabric/ovsdb", "internal/..."},
		"the caller passes the engine to try, so an import of an engine would limit the trials to that engine"},

	{"store", []string{"unit", "group", "fabric/...", "config", "probe/schedule"},
		"the store only keeps the desired state, and an import of enforcement would make every controller depend on the kernel"},
	{"store/etcd", []string{"internal/listen", "internal/pki", "internal/wholefile"},
		"a member of etcd runs independently of the stored documents, and an import of store would tie it to their format"},
	{"store/backend", []string{"config", "store", "store/etcd", "internal/flock", "internal/wholefile"},
		"stores are opened, backed up and restored without a running controller, which an import of the controller would prevent"},
	{"store/storetest", []string{"store", "store/etcd"},
		"tests of many packages use it, so any further import could be an import cycle in one of them"},
	{"controller/controllertest", []string{"api/agents", "api/server", "agent/remote", "controller", "store", "internal/..."},
		"its agents enforce nothing so that tests run without root, which an import of an engine would prevent"},
	{"api/agents", []string{"group"},
		"agents and controllers of different versions exchange these messages, and an import of either side would tie the format to its internals"},
	{"api/local", []string{"internal/..."},
		"tenants' programs import it, so every import of ours would become a dependency of theirs"},
	{"agent/remote", []string{"unit", "group", "usage", "collective", "config", "agent/reserved", "api/client", "api/agents", "internal/..."},
		"it is tested against a controller without root, which an import of an engine would prevent"},
	{"agent/intent", []string{"group", "config", "shaper"},
		"the merging of documents is tested with tables, which an import of files or sockets would prevent"},
	{"agent/reserved", []string{"unit", "group"},
		"which reservations a host enforces is tested with trees, which an import of enforcement would prevent"},
	{"agent/sets", []string{"unit", "collective/...", "internal/..."},
		"connection sets also run on hosts that shape no device, which an import of the agent's device loop would prevent"},
	{"usage", []string{"unit"},
		"shaper, agent/record and controller import it, so an import of one of them would be an import cycle"},
	{"agent/record", []string{"unit", "usage", "internal/wholefile"},
		"records are tested with fixed counters and times, which an import of the kernel's interfaces would prevent"},
	{"api", nil,
		"the server imports the specification and the clients are generated from it, so an import of either would be circular"},
	{"api/client", nil,
		"programs that call the API import it, so an import of ours would add parts of the service to them"},
	{"api/server", []string{"unit", "group", "collective", "fabric/...", "store", "config", "probe", "probe/path", "probe/schedule", "probe/tune", "api", "api/client"},
		"the API is tested without hosts and without root, which an import of enforcement would prevent"},
	{"api/login", []string{"api/client", "internal/pki", "internal/wholefile"},
		"every command that calls a service logs in with it, so any further import would be added to all of them"},
	{"api/host", []string{"unit", "group", "config", "shaper", "probe/path", "hostsurvey/placement", "api/client", "internal/sleep"},
		"clients show and change remote hosts with it, so an import of an agent or controller would add the service to its clients"},
	{"metrics", []string{"internal/listen", "unit", "group", "shaper", "usage", "collective/...", "relay/...", "fabric/...", "probe", "probe/path"},
		"a scrape must only read state, and an import of code that applies changes would allow it to change the system"},
	{"agent", []string{"unit", "group", "config", "shaper", "agent/reserved", "api/local", "internal/..."},
		"agent/service, observe and rollout import this loop, so an import of one of them would be an import cycle"},
	{"agent/service", []string{"unit", "group", "usage", "config", "shaper", "doctor", "pending", "metrics", "collective", "collective/host", "relay/host", "probe", "probe/once", "probe/schedule",
		"agent", "agent/intent", "agent/record", "agent/remote", "agent/reserved", "agent/sets", "api/agents", "internal/..."},
		"it joins the parts of the agent, and decisions made here could be tested only with all of them running"},
	{"controller", []string{"controller/network", "controller/frames", "controller/circuits", "controller/points", "controller/reservations", "unit", "group", "share", "config", "fabric/...", "probe", "probe/path", "probe/schedule", "store", "api/client", "api/server", "api/agents", "metrics", "usage", "web", "internal/..."},
		"controllers run on machines that shape nothing, and an import of an engine would make them depend on kernel features"},
	{"controller/frames", []string{"fabric", "group"},
		"frames are made of text and a topology, which could not be tested alone with an import of the store or of the API"},
	{"controller/network", []string{"fabric/...", "internal/listen"},
		"it is tested with switches in memory, which an import of the store or of the API would prevent"},
	{"controller/reservations", []string{"unit", "config", "fabric", "fabric/redirect", "fabric/reserve", "store"},
		"decisions are tested with a store and a topology, which an import of the API or of switches would prevent"},
	{"controller/circuits", []string{"controller/points", "unit", "share", "usage", "fabric/...", "api/agents"},
		"limits are tested with switches in memory, which an import of the store or of the API would prevent"},
	{"controller/points", []string{"unit", "fabric/...", "api/agents"},
		"messages to hosts are a function of reservations, which could not be tested alone with an import of the store or of streams"},
	{"controller/service", []string{"unit", "config", "controller", "store", "store/etcd", "store/backend", "metrics", "internal/sdnotify"},
		"it joins the controller, its store and metrics, and decisions made here could be tested only with all of them running"},
	{"web", nil,
		"the dashboard must use only the API, and an import of ours would give it access that other clients do not have"},

	{"hostsurvey", []string{"unit", "doctor", "probe/tune", "shaper", "internal/..."},
		"a survey must only read the machine and write text, and an import of an engine would allow it to change devices"},
	{"hostsurvey/placement", []string{"unit", "group", "config", "internal/..."},
		"warnings are tested with a configuration and a description of a machine, which an import of an engine would prevent"},
	{"internal", []string{"unit", "internal/..."},
		"packages of every layer import these packages, so an import of a model could be an import cycle"},

	{"lab/link", []string{"unit"},
		"links are tested against their definition in virtual time, which an import of devices would prevent"},
	{"lab/report", []string{"lab", "lab/traffic", "unit/rounded", "internal/text"},
		"view draws these reports, so an import of view would be an import cycle"},
	{"lab", []string{"unit", "lab/...", "internal/..."},
		"the product is tested in the lab, and if the lab used the product, a fault of the product could hide itself"},
	{"demo", []string{"unit", "unit/rounded", "group", "config", "shaper", "lab/...", "bench", "view", "internal/..."},
		"the demo must work with the commands and requests of an operator, and an import of the agent or controller could bypass them"},
	{"demo/sites", []string{"unit", "lab", "lab/link", "lab/traffic"},
		"demo imports the network, so an import of the code that runs it would be an import cycle"},
	{"demo/scenario", []string{"unit", "group", "share", "lab", "lab/traffic"},
		"demo imports the scenario, so an import of the code that runs it would be an import cycle"},
	{"observe", []string{"group", "shaper", "agent"},
		"the caller passes engines and devices, so an import of an engine would limit observation to that engine"},
	{"rollout", []string{"group", "config", "config/diff", "observe", "pending", "shaper", "shaper/attach", "agent"},
		"the caller passes engines and devices, so an import of an engine would limit changes to that engine"},
	{"view", []string{"unit", "unit/rounded", "group", "shaper", "usage", "collective", "collective/host", "relay/host", "relay/stripe", "probe", "lab/report", "view", "internal/text", "internal/sleep"},
		"it draws the states of this machine and of remote hosts alike, and an import that reads one source would limit it to that source"},
	{"relay/host", []string{"unit", "relay/...", "internal/..."},
		"metrics and views import it to read its status, so an import of either would be an import cycle"},
	{"packaging", nil,
		"its files describe the installed program, and an import of ours would test the source code instead"},
	{"bench", []string{"..."},
		"experiments measure every part of the product, so a restriction would exclude a part from measurement"},
	{"cli", []string{"..."},
		"commands call every part of the product, so a restriction would leave a part without a command"},
	{"test/e2e", nil,
		"it contains only tests of the whole program, and a helper written here would not be shared with other tests"},
	{"test/clients", nil,
		"it contains only tests of generated clients, and a helper written here would not be shared with other tests"},
	{"cmd", []string{"cli"},
		"main functions have no tests, so an import of anything but cli would add untested code"},
}

// reserved lists packages that only the packages in may can import, even if the layer of another package allows
// it.
var reserved = []layer{
	{"cli", []string{"cmd/..."},
		"cli imports every part of the product, so the importer would depend on all of them"},
	{"view", []string{"cli", "demo"},
		"it draws for people, so a package that imported it for a value would depend on a terminal library"},
	{"demo", []string{"cli"},
		"it imports the lab, so the product would depend on code that creates namespaces and emulated links"},
	{"observe", []string{"cli", "rollout"},
		"long-running programs read devices in the agent's loop, and a second reader could contradict it"},
	{"rollout", []string{"cli"},
		"long-running programs change devices in the agent's loop, and a second writer could undo its changes"},
	{"api/host", []string{"cli"},
		"it calls the API as a client, so the service or an agent would depend on requests to itself"},
	{"cmd", nil,
		"Go cannot import a main package, so the build would fail"},
	{"fabric/ovsdb/ovsdbtest", nil,
		"it is test code, which would become a part of the product"},
	{"fabric/openflow/oftest", []string{"bench/..."},
		"it is test code, which would become a part of the product"},
	{"fabric/openflow/judge", []string{"bench/..."},
		"it is test code, which would become a part of the product"},
	{"internal/browser/browsertest", nil,
		"it is test code, which would become a part of the product"},
	{"store/storetest", nil,
		"it is test code, which would become a part of the product"},
	{"controller/controllertest", nil,
		"it is test code, which would become a part of the product"},
	{"internal/golden", nil,
		"it defines the test flag -update, which would become a flag of the program"},
	{"lab", []string{"lab/...", "bench/...", "cli", "demo/...", "shaper/shapertest"},
		"it creates namespaces and emulated links, and this code would become a part of what runs in production"},
	{"shaper/engines", []string{"cli"},
		"it imports all engines, so the importer would depend on all of them instead of the engine that is passed to it"},
	{"agent/service", []string{"cli"},
		"it imports all parts of the agent, so the importer would depend on all of them"},
	{"probe/report", []string{"cli"},
		"commands print its tables, and a library that imported it would depend on a format for people"},
	{"collective/service", []string{"cli"},
		"it imports the control loop, the kernel's table and metrics, so the importer would depend on all of them"},
	{"controller/service", []string{"cli"},
		"it imports the controller, its store and metrics, so the importer would depend on all of them"},
	{"lab/report", []string{"cli", "view"},
		"commands and the live view show its tables, and a library that imported it would depend on a format for people"},
	{"lab/link", []string{"lab/...", "bench/...", "cli", "demo/sites", "shaper/shapertest", "probe/sim/..."},
		"it emulates links for tests and experiments, and this code would become a part of what runs in production"},
	{"probe/sim", []string{"bench/..."},
		"it simulates paths for tests and benches, and the product could report measurements of paths that do not exist"},
	{"share/sharetest", []string{"bench/..."},
		"it is test code, which would become a part of the product"},
	{"probe/sim/simtest", nil,
		"it is test code, which would become a part of the product"},
	{"bench", []string{"bench/...", "cli", "demo"},
		"it contains experiments, and the product would depend on code and tools that only they need"},
}

const module = "headgate.dev/headgate"

// TestImports checks which package imports which (docs/architecture.md). Test files may import any package.
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

// TestCommandLineTouchesNoKernel checks that cli imports no library for netlink or eBPF: code that calls the kernel
// belongs in other packages.
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

// TestWithoutStore checks that the agent and the API's clients, which run on hosts and in programs of tenants, do
// not depend on the store.
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

// packages returns the packages of this module and, for each, those of this module that it imports. The paths are
// without the module's name.
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

// find returns the layer with the longest path that is pkg or above it.
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
