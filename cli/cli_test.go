package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/internal/golden"
)

func TestExitCodes(t *testing.T) {
	w := newWorld(t, "eth0", "eth1")
	good := w.config("eth0", "1Gbit")
	bad := w.write("bad.yaml", "kind: Interface\ndev: eth0\nout: {limit: 1000}\n")
	cgroup := w.write("cgroup.yaml", "kind: Interface\ndev: eth0\nout: {limit: 1Gbit, groups: [{name: a, default: true, match: [{cgroup: /no/such}]}]}\n")
	quantum := w.write("unknown.yaml", "kind: Interface\ndev: eth7\nout: {limit: 1Gbit, groups: [{name: a, default: true}]}\n")
	w.write("eth1.forbidden", "")
	forbidden := w.write("forbidden.yaml", document("eth1", "1Gbit"))
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", exitOK, ""},
		{"help", exitOK, ""},
		{"--help", exitOK, ""},
		{"version", exitOK, ""},
		{"completion bash", exitOK, ""},
		{"completion frob", exitUsage, `unknown command "frob"`},
		{"help apply", exitOK, ""},
		{"help aply", exitUsage, "did you mean apply?"},
		{"help lab frob", exitUsage, `unknown command "frob"`},
		{"lab frob", exitUsage, `unknown command "frob"`},
		{"assign", exitUsage, "missing argument: usage: headgate assign GROUP --dev DEV"},
		{"assign a b --dev eth0 --conn x", exitUsage, `unexpected argument "b": usage: headgate assign GROUP --dev DEV`},
		{"show groups frob", exitUsage, `unexpected argument "frob": usage: headgate show [groups|assignments|clients]`},
		{"chek", exitUsage, "did you mean check?"},
		{"frobnicate", exitUsage, `unknown command "frobnicate"`},
		{"appply -f x.yaml", exitUsage, `unknown command "appply": did you mean apply?`},
		{"lab upp -f x.yaml", exitUsage, `unknown command "upp"`},
		{"--version", exitOK, ""},
		{"check", exitUsage, "configuration is missing"},
		{"check --frob", exitUsage, "headgate check --help"},
		{"check extra -f " + good, exitUsage, "check --help"},
		{"check -o xml -f " + good, exitUsage, "table, json or yaml"},
		{"check -f " + good, exitOK, ""},
		{"check -f " + bad, exitUsage, "bad.yaml:3: out.limit"},
		{"check -f /no/such/file", exitUsage, "/no/such/file: cannot read file: no such file"},
		{"check -f " + cgroup, exitUsage, "cgroup.yaml:3: out.groups[0].match[0].cgroup"},
		{"check --offline -f " + cgroup, exitOK, ""},
		{"plan -f " + bad, exitUsage, "out.limit"},
		{"apply -f " + bad, exitUsage, "out.limit"},
		{"apply -f " + cgroup, exitUsage, `cgroup "/no/such" does not exist`},
		{"apply -f " + quantum, exitFailed, "no such device"},
		{"apply -f " + forbidden, exitNotPermitted, "CAP_NET_ADMIN"},
		{"apply -f " + good + " --confirm-within 1h99x", exitUsage, "--confirm-within"},
		{"apply -f " + good + " --confirm-within 1ms", exitUsage, "1s to 24h"},
		{"apply -f " + good + " --confirm-within 60", exitUsage, `--confirm-within: "60" is not a duration: set for example`},
		{"confirm", exitFailed, "no change is pending"},
		{"show --dev eth0", exitFailed, "eth0 has no bandwidth groups"},
		{"show frob", exitUsage, "frob"},
		{"show --dev eth1", exitNotPermitted, "CAP_NET_ADMIN"},
		{"clear", exitUsage, "--dev is missing"},
		{"assign a --dev eth0", exitUsage, "--conn is missing"},
		{"explain --dev eth0", exitUsage, "--packet is missing"},
		{"explain --packet arp", exitUsage, "--dev is missing"},
		{"explain --busy", exitUsage, "--dev is missing"},
		{"explain --busy --packet arp --dev eth0", exitUsage, "--busy and --packet exclude each other"},
		{"explain --demand a=1Mbit --packet arp --dev eth0", exitUsage, "--demand and --packet exclude each other"},
		{"explain --busy --dev eth0", exitFailed, "eth0 has no bandwidth groups"},
		{"explain --dev eth0 --packet tcp", exitUsage, "is not a packet"},
		{"show --server default", exitUsage, "--server cannot be used without --host"},
		{"demo --network --fast", exitUsage, "--fast and --network exclude each other: omit all but one of them"},
		{"demo --network --seed x", exitUsage, `--seed: "x" is not a number that it can have: set a whole number from 0`},
		{"reserve create a --from b --to c --rate 1Mbit --for 2d", exitUsage, "48h"},
		{"reserve create a --from b --to c --rate 1Mbit --for 2h --carry relays", exitUsage, "write relay\n"},
	} {
		r := w.run(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.err, c.stderr) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, c.code, c.stderr, r.err)
		}
		if r.code != exitOK && r.out != "" {
			t.Errorf("headgate %s: error on standard output:\n%s", c.args, r.out)
		}
	}
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("eth0 was changed by a command that failed: %s", limit)
	}
}

func TestCheckPrints(t *testing.T) {
	w := newWorld(t)
	file := w.write("eth0.yaml", readFile("testdata/eth0.yaml"))
	for _, format := range []string{"table", "json", "yaml"} {
		r := w.must("check", "--offline", "-f", file, "-o", format)
		golden.Compare(t, "testdata/check."+format, r.out)
	}
	bad := w.run("check", "-o", "json", "-f", w.write("bad.yaml", "kind: Interface\ndev: eth0\nout: {limit: 1000}\n"))
	if bad.code != exitUsage || bad.err != "" {
		t.Errorf("check -o json of an invalid file: exit %d, %q on standard error", bad.code, bad.err)
	}
	golden.Compare(t, "testdata/check-mistakes.json", bad.out)
	if r := w.runWith(document("eth0", "1Gbit"), "check", "-f", "-"); r.code != exitOK {
		t.Errorf("check -f -: exit %d\n%s", r.code, r.err)
	}
}

// TestCommandsAreDocumented: each command has a Short, and an Example that uses it.
func TestCommandsAreDocumented(t *testing.T) {
	eachCommand(fakeApp(t.TempDir()).root(), func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: want a Short without a full stop", c.CommandPath())
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: want an Example that uses the command", c.CommandPath())
		}
	})
}

// TestCommandsDocument checks that docs/commands.md equals the help of the commands.
// "make docs" generates the file.
func TestCommandsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Written by \"make docs\" from the commands themselves. -->\n")
	b.WriteString("\nExit codes: 0 done, 1 failed, 2 wrong usage or configuration (nothing was changed), 3 not permitted.\n")
	eachCommand(fakeApp(t.TempDir()).root(), func(c *cobra.Command) {
		b.WriteString("\n## " + c.CommandPath() + "\n\n")
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		b.WriteString(text + "\n\n```\n" + c.UseLine() + "\n")
		b.WriteString(strings.TrimRight(c.NonInheritedFlags().FlagUsages(), "\n") + "\n```\n")
		if c.Example == "" {
			return
		}
		b.WriteString("\nExamples:\n\n```sh\n")
		for line := range strings.Lines(c.Example) {
			b.WriteString(strings.TrimPrefix(line, "  "))
		}
		b.WriteString("\n```\n")
	})
	file := filepath.Join("..", "docs", "commands.md")
	if !golden.Update() && readFile(file) != b.String() {
		t.Fatal("docs/commands.md is out of date: run make docs")
	}
	golden.Compare(t, file, b.String())
}

// eachCommand visits the visible commands, except cobra's help and completion.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.Runnable() {
			sub.InitDefaultHelpFlag()
			f(sub)
		}
		eachCommand(sub, f)
	}
}

// TestCompletion checks the words that shell completion offers.
func TestCompletion(t *testing.T) {
	w := newWorld(t, "eth0", "eth1", "hgi7", "lo")
	w.must("apply", "-f", w.write("eth0.yaml", strings.ReplaceAll(readFile("testdata/eth0.yaml"), ", {cgroup: /system.slice/nginx.service}", "")))
	for words, want := range map[string]string{
		"show --dev ":            "eth0 eth1 lo all",
		"clear --dev ":           "eth0 eth1 lo all",
		"assign ":                "backup rest storage tenant/rest tenant/web web",
		"assign --dev eth0 ":     "backup rest storage tenant/rest tenant/web web",
		"assign --dev eth0 web ": "",
		"doctor ":                "eth0 eth1 lo",
		"plan -o ":               "table json yaml",
		"top -o ":                "table json",
		"explain --direction ":   "out in both",
		"explain --demand ":      "backup= rest= storage= tenant/rest= tenant/web= web=",
		"show ":                  "groups assignments clients",
		"demo --engine ":         "htb quantum",
		"agent --log-level ":     "debug info warn error",
	} {
		fields := strings.Split(words, " ")
		r := w.must(append([]string{"__complete"}, fields...)...)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if got := strings.Join(lines[:len(lines)-1], " "); got != want {
			t.Errorf("headgate %s<TAB>: %q, want %q", words, got, want)
		}
	}
	if r := w.must("__complete", "apply", "-f", ""); !strings.HasPrefix(r.out, ":0") {
		t.Errorf("apply -f does not offer files: %s", r.out)
	}
}

func TestEveryCommandIsListed(t *testing.T) {
	names := []string{}
	eachCommand(fakeApp(t.TempDir()).root(), func(c *cobra.Command) { names = append(names, c.Name()) })
	for _, want := range []string{"check", "plan", "apply", "confirm", "show", "explain", "assign", "unassign", "clear", "version"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the list of commands", want)
		}
	}
}
