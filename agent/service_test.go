package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/cli"
)

// The systemd units, and the highest exposure level that systemd-analyze security may report, in
// tenths.
const (
	unitFile, unitExposure             = "../packaging/systemd/headgate.service", 31
	controllerFile, controllerExposure = "../packaging/systemd/headgate-controller.service", 15
	relayFile, relayExposure           = "../packaging/systemd/headgate-relay.service", 25
)

// settings parses a unit as section.key: values. It supports one setting per line, which is a
// subset of systemd's syntax.
func settings(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case ok:
			out[section+"."+key] = append(out[section+"."+key], value)
		default:
			t.Errorf("unexpected line %q in the unit", line)
		}
	}
	return out
}

// TestUnit checks the settings of the units on which the agent and the controller rely.
func TestUnit(t *testing.T) {
	for file, relied := range map[string]map[string]string{
		unitFile: {
			"Service.Type":                     "notify",                              // READY, RELOADING, STOPPING and WATCHDOG
			"Service.RestartPreventExitStatus": "2 3",                                 // errors that a restart does not fix
			"Service.ReadWritePaths":           "/sys/fs/bpf",                         // the eBPF program that measures queues is pinned there
			"Service.StateDirectory":           "headgate",                            // pending.DefaultDir
			"Service.RuntimeDirectory":         "headgate",                            // the engines' lock
			"Service.RuntimeDirectoryPreserve": "yes",                                 // other processes hold the lock when the agent stops
			"Service.ConfigurationDirectory":   "headgate",                            // optional on a host that has joined a controller
			"Service.RestrictAddressFamilies":  "AF_NETLINK AF_UNIX AF_INET AF_INET6", // the kernel, the service manager, controllers
			"Service.RestrictNamespaces":       "net",                                 // network namespaces of connections that are passed to the agent
			"Service.CapabilityBoundingSet":    "CAP_NET_ADMIN CAP_BPF CAP_PERFMON CAP_SYS_ADMIN CAP_SYS_PTRACE",
			"Unit.ConditionDirectoryNotEmpty":  "|/etc/headgate",                         // files,
			"Unit.ConditionPathExists":         "|/var/lib/headgate/agent/identity.json", // or a controller
			"Unit.Before":                      "network-pre.target",
			"Install.WantedBy":                 "multi-user.target",
		},
		relayFile: {
			"Service.Type":                     "notify",         // READY, RELOADING, MAINPID, STOPPING
			"Service.NotifyAccess":             "all",            // a former process that accepts again
			"Service.RestartPreventExitStatus": "2 3",            // errors that a restart does not fix
			"Service.RuntimeDirectory":         "headgate/relay", // the status socket
			"Service.RuntimeDirectoryPreserve": "yes",            // of other agents, too
			"Service.CapabilityBoundingSet":    "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE",
			"Service.RestrictAddressFamilies":  "AF_NETLINK AF_UNIX AF_INET AF_INET6 AF_PACKET", // nft and the kernel, the service manager, connections, announcements
			"Unit.ConditionPathExists":         "/etc/headgate/relay.yaml",
			"Install.WantedBy":                 "multi-user.target",
		},
		controllerFile: {
			"Service.Type":                     "notify", // READY, STOPPING
			"Service.RestartPreventExitStatus": "2",
			"Service.User":                     "headgate",            // from sysusers.d
			"Service.StateDirectory":           "headgate/controller", // --data
			"Service.KillMode":                 "mixed",               // the controller stops the store itself
			"Service.CapabilityBoundingSet":    "",
			"Install.WantedBy":                 "multi-user.target",
		},
	} {
		unit := settings(t, file)
		for key, want := range relied {
			if got := unit[key]; len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", file, key, got, want)
			}
		}
		for _, line := range append(unit["Service.ExecStart"], unit["Service.ExecReload"]...) {
			understood(t, strings.Replace(strings.TrimSuffix(strings.TrimSuffix(line, " $HEADGATE_CONTROLLER"), " $HEADGATE_RELAY"), "/usr/bin/headgate", "headgate", 1))
		}
	}
	if !slices.Contains(strings.Fields(settings(t, unitFile)["Service.SystemCallFilter"][0]), "bpf") {
		t.Error("the unit does not allow the system call bpf")
	}
}

// understood checks that the program accepts a command and its flags. The line is run with --help
// first, so the command itself never runs.
func understood(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if words[0] != "headgate" {
		return
	}
	var out, errs bytes.Buffer
	code := cli.Run(append([]string{"--help=true"}, words[1:]...), nil, &out, &errs)
	_, usage, _ := strings.Cut(out.String(), "Usage:\n")
	if code != 0 || !strings.HasPrefix(usage, "  headgate "+words[1]) {
		t.Errorf("%s: exit %d\n%s", line, code, errs.String())
		return
	}
	if len(words) > 2 && words[2][0] != '-' && strings.Contains(usage, "headgate "+words[1]+" [command]") {
		t.Errorf("%s: headgate %s has no command %s", line, words[1], words[2])
	}
}

// TestUnitIsVerified checks the units with systemd, if it is installed.
func TestUnitIsVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: the units were only parsed")
		return
	}
	for file, exposure := range map[string]int{unitFile: unitExposure, controllerFile: controllerExposure, relayFile: relayExposure} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The program may not be installed on this machine.
		text = bytes.ReplaceAll(text, []byte("/usr/bin/headgate"), []byte(os.Args[0]))
		copied := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
		if out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", fmt.Sprint("--threshold=", exposure), copied).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security: exposure above %d of 100: %v\n%s", exposure, err, out)
		}
	}
	users, err := filepath.Abs("../packaging/sysusers.d/headgate.conf")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-sysusers", "--dry-run", users).CombinedOutput(); err != nil {
		t.Errorf("systemd-sysusers: %v\n%s", err, out)
	}
}

// TestDocumentedCommands checks that the program accepts the commands in the documentation.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "commands.md" {
			continue // generated from the program
		}
		blocks := strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "```")
		found := 0
		for i := 1; i < len(blocks); i += 2 {
			_, block, _ := strings.Cut(blocks[i], "\n") // its language
			for line := range strings.Lines(block) {
				line, _, _ = strings.Cut(line, " #")
				line = strings.ReplaceAll(line, "$REVISION", "4711")
				if strings.HasPrefix(line, "headgate ") {
					found++
					understood(t, line)
				}
			}
		}
		if known := []string{"README.md", "install.md", "operate.md", "tenants.md", "service.md", "collective.md"}; found == 0 && slices.Contains(known, filepath.Base(file)) {
			t.Errorf("found no command in %s", file)
		}
	}
}
