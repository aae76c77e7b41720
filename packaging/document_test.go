package packaging

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// block is what a document has between ``` and ```.
type block struct{ language, text string }

// blocks are those of a section, without the sections in it, or of a whole document if section is "".
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
		t.Fatalf("%s has nothing to type in %q", file, section)
	}
	return out
}

// made are commands that the tests have done already: they take their time, and network.
var made = map[string]string{
	"make release VERSION=" + older: "ls dist/headgate_" + older + "_*.deb",
	"make build":                    "ls headgate",
}

// script is what a shell is to do. A command is refused if the document says so; variables and functions are
// there in the next block. A file that is shown and named in its first line is written.
func (b block) script() string {
	if b.language != "sh" {
		name, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
		return "cat >" + name + " <<'END'\n" + b.text + "END"
	}
	var s strings.Builder
	s.WriteString("touch ../typed && . ../typed && trap 'status=$?; set +ex; { declare -p PIN SHOP JSON PATCH AT TAG KEY FIRST; declare -f; } >../typed 2>/dev/null; exit $status' EXIT\nset -ex\n")
	for line := range strings.Lines(b.text) {
		line = strings.ReplaceAll(line, "_amd64.deb", "_"+runtime.GOARCH+".deb")
		command, comment, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "    # ")
		if instead := made[strings.TrimSpace(command)]; instead != "" {
			line = instead + "\n"
		}
		if strings.HasPrefix(comment, "refused") {
			line = "if " + command + "; then echo it is not refused; exit 1; fi\n"
		}
		s.WriteString(line)
	}
	return s.String()
}
