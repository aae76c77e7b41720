package packaging

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// block is a fenced code block of a document.
type block struct{ language, text string }

// blocks returns the code blocks of a section, without its subsections, or of the whole document if section is "".
func blocks(t testing.TB, file, section string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	here, open := section == "", false
	for line := range strings.Lines(string(text)) {
		fence, fenced := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fenced && open:
			open = false
		case fenced:
			open = true
			if here {
				out = append(out, block{language: fence})
			}
		case open && here:
			out[len(out)-1].text += line
		case !open && strings.HasPrefix(line, "#") && section != "":
			here = strings.TrimLeft(strings.TrimSpace(line), "# ") == section
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: section %q has no code block", file, section)
	}
	return out
}

// alreadyRun replaces commands that the tests have already run, because the commands take long and need the network.
var alreadyRun = map[string]string{
	"make release VERSION=" + older: "ls dist/headgate_" + older + "_*.deb",
	"make build":                    "ls headgate",
}

// shellScript returns the shell script of a block. A command with the comment "refused" must fail. Variables and
// functions are passed to the next block. A command that runs until Ctrl-C runs on. A block of another language is
// written to the file that its first line names; without a name it is only read.
func (b block) shellScript() string {
	if b.language != "sh" && !strings.HasPrefix(b.text, "# ") {
		return "true"
	}
	if b.language != "sh" {
		name, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
		return "cat >" + name + " <<'END'\n" + b.text + "END"
	}
	var s strings.Builder
	s.WriteString("touch ../typed && . ../typed && trap 'status=$?; set +ex; { declare -p PIN REVISION TOKEN GROUPS_URL SHOP JSON PATCH AT TAG KEY FIRST; declare -f; } >../typed 2>/dev/null; exit $status' EXIT\nset -ex\n")
	for line := range strings.Lines(b.text) {
		line = strings.ReplaceAll(line, "_amd64.deb", "_"+runtime.GOARCH+".deb")
		command, comment, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "    # ")
		if instead := alreadyRun[strings.TrimSpace(command)]; instead != "" {
			line = instead + "\n"
		}
		if strings.HasPrefix(comment, "refused") {
			line = "if " + command + "; then echo command did not fail; exit 1; fi\n"
		}
		if strings.Contains(comment, "it runs until Ctrl-C") {
			line = inBackground(strings.TrimSpace(command))
		}
		s.WriteString(line)
	}
	return s.String()
}

// inBackground returns the lines that start a command, and wait until it does what the next ones need.
func inBackground(command string) string {
	line := "setsid " + command + " >>../background.log 2>&1 </dev/null &\n"
	ready := map[string]string{"controller": "headgate controller pin", "agent": "headgate host list -o json | grep '\"connected\": true'"}
	if wait := ready[strings.Fields(command)[1]]; wait != "" {
		line += "for n in $(seq 300); do { " + wait + "; } >/dev/null 2>&1 && break; sleep 0.1; done\n"
	}
	return line
}
