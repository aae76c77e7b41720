package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// runCommand is (*app).run, set when the program starts: the list of commands
// has demo in it, and a variable may not refer to itself.
var runCommand func(*app, []string) int

func init() { runCommand = (*app).run }

// headgate runs one of our own commands on the server, as a user would there.
func (p *play) headgate(args ...string) error {
	p.stage.say("  $ headgate " + shellWords(args))
	var out bytes.Buffer
	sub := *p.app
	sub.in, sub.out, sub.err, sub.state = strings.NewReader(""), &out, &out, filepath.Join(p.dir, "state")
	code := failed
	if err := p.within(func() error { code = runCommand(&sub, args); return nil }); err != nil {
		return err
	}
	text := strings.TrimRight(out.String(), "\n")
	if code != done {
		return fmt.Errorf("headgate %s: %s", shellWords(args), text)
	}
	for line := range strings.Lines(text) {
		p.stage.say("    " + strings.TrimRight(line, "\n"))
	}
	return nil
}

// shellWords writes arguments as one would type them.
func shellWords(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, " '\"$") {
			a = "'" + a + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

// applyConfig writes the phase's configuration, shows what is new in it, and
// applies it.
func (p *play) applyConfig() error {
	file := filepath.Join(p.dir, "server.yaml")
	text := p.config(p.phases[p.phase].shares)
	before, _ := os.ReadFile(file)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("the configuration cannot be written: %w", err)
	}
	title := "On the server, in " + file + ":"
	if len(before) > 0 {
		title = "Changed in " + file + ":"
	}
	p.stage.say("", title, "")
	old := strings.Split(string(before), "\n")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i >= len(old) || old[i] != line {
			p.stage.say("    " + line)
		}
	}
	p.stage.say("")
	return p.headgate("apply", "-f", file)
}

// moveConnection puts the download in another group.
func (p *play) moveConnection() error {
	from, to, err := p.session.Conn(demoMoved + " out")
	if err != nil {
		return err
	}
	return p.headgate("assign", movedTo, "--dev", demoDev, "--conn", fmt.Sprintf("tcp %v %v", from, to))
}
