package agent_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate/cli"
)

const unitFile = "../packaging/systemd/headgate.service"

// settings reads a unit as section.key: values. Systemd's own syntax is wider;
// ours keeps to one setting a line.
func settings(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
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
			t.Errorf("the unit has the line %q", line)
		}
	}
	return out
}

// TestUnit holds the unit to what the agent relies on.
func TestUnit(t *testing.T) {
	unit := settings(t)
	for key, want := range map[string]string{
		"Service.Type":                     "notify",             // READY, RELOADING, STOPPING and WATCHDOG
		"Service.RestartPreventExitStatus": "2 3",                // what does not mend itself
		"Service.ReadWritePaths":           "/sys/fs/bpf",        // the hook that measures queues is pinned there
		"Service.StateDirectory":           "headgate",           // pending.DefaultDir
		"Service.RuntimeDirectory":         "headgate",           // the engines' lock
		"Service.RuntimeDirectoryPreserve": "yes",                // which others hold when the agent stops
		"Service.RestrictAddressFamilies":  "AF_NETLINK AF_UNIX", // the kernel and the service manager
		"Service.CapabilityBoundingSet":    "CAP_NET_ADMIN CAP_BPF CAP_PERFMON CAP_SYS_ADMIN",
		"Unit.Before":                      "network-pre.target",
		"Install.WantedBy":                 "multi-user.target",
	} {
		if got := unit[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if !slices.Contains(strings.Fields(unit["Service.SystemCallFilter"][0]), "bpf") {
		t.Error("the unit does not permit the system call bpf")
	}
	for _, line := range append(unit["Service.ExecStart"], unit["Service.ExecReload"]...) {
		understood(t, strings.Replace(line, "/usr/bin/headgate", "headgate", 1))
	}
}

// understood: the program knows the command and its flags.
func understood(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if words[0] != "headgate" {
		return
	}
	var out, errs bytes.Buffer
	if code := cli.Run(append(words[1:], "--help"), nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "Usage:\n  headgate "+words[1]) {
		t.Errorf("%s: exit %d\n%s", line, code, errs.String())
	}
}

// TestUnitIsVerified asks systemd, where it is installed.
func TestUnitIsVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: the unit was only read")
		return
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	// The program need not be installed here.
	text = bytes.ReplaceAll(text, []byte("/usr/bin/headgate"), []byte(os.Args[0]))
	copied := filepath.Join(t.TempDir(), "headgate.service")
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestDocumentedCommands: the program understands what docs/operate.md tells
// people to type.
func TestDocumentedCommands(t *testing.T) {
	text, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	found := 0
	for i := 1; i < len(blocks); i += 2 {
		for line := range strings.Lines(strings.TrimPrefix(blocks[i], "sh\n")) {
			line, _, _ = strings.Cut(line, " #")
			if strings.HasPrefix(line, "headgate ") {
				found++
				understood(t, line)
			}
		}
	}
	if found == 0 {
		t.Error("no command was found in docs/operate.md")
	}
}
