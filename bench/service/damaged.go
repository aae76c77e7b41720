package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
)

// Chosen by this project.
const (
	// repairTime is how long a service or an agent may take to work as before.
	repairTime = 10 * time.Second
	// flips is the number of random bits that a damage inverts.
	flips = 10
	// maxSentences is the maximum number of lines that a process may log before it ends.
	maxSentences = 3
)

// damages are what can happen to a file. In a full run the last one happens 20 times to each file.
var damages = []struct {
	name string
	do   func(text []byte, d *bench.Draw) []byte
}{
	{"emptied", func([]byte, *bench.Draw) []byte { return nil }},
	{"cut", func(text []byte, _ *bench.Draw) []byte { return text[:len(text)/2] }},
	{"zeroed", func(text []byte, _ *bench.Draw) []byte { return make([]byte, len(text)) }},
	{"flipped", func(text []byte, d *bench.Draw) []byte {
		for range flips {
			if len(text) > 0 {
				text[d.Int(0, len(text)-1)] ^= 1 << d.Int(0, 7)
			}
		}
		return text
	}},
}

// damaging is a damage of a file.
type damaging struct {
	file string // below the folder
	kind int    // in damages
}

// damagings returns the damages of the files of a folder: in a smoke run one for each file.
func damagings(dir string, quick bool) (all []damaging, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for kind := range damages {
			times := 1
			if kind == len(damages)-1 && !quick {
				times = 20
			}
			all = append(all, slices.Repeat([]damaging{{file, kind}}, times)...)
		}
		return nil
	})
	if quick {
		var few []damaging
		for n, d := range all {
			if n/len(damages)%len(damages) == d.kind {
				few = append(few, d)
			}
		}
		all = few
	}
	return all, err
}

func (d damaging) String() string { return d.file + " " + damages[d.kind].name }

// copyDamaged replaces a folder by a copy of another one, with the damage.
func (d damaging) copyDamaged(from, to string, draw *bench.Draw) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil { // with modes: keys are secret
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	file := filepath.Join(to, d.file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, damages[d.kind].do(text, draw), 0o600)
}

func damagedCases(d *bench.Draw) []bench.Case {
	drawn := d.For("damaged")
	takes := bench.Takes(time.Minute, 10*time.Minute)
	return []bench.Case{
		{Name: "damaged/controller", Takes: takes, Alongside: smoke("damaged"), Claims: []bench.Claim{
			bench.NewClaim("damaged/controller/served", "of the damages of files of the controller, those after which it neither serves as before within 10 s nor ends with one sentence", violations),
			bench.NewClaim("damaged/controller/lost", "of the damages of files of the controller, those after which it serves without an acknowledged change", violations),
		}, Run: func(ctx context.Context, r *bench.Run) error { return damageController(ctx, r, drawn) }},
		{Name: "damaged/agent", Takes: takes, Alongside: smoke("damaged"), Claims: []bench.Claim{
			bench.NewClaim("damaged/agent/enforced", "of the damages of files of an agent on a machine that has started anew, those after which it neither enforces as before within 10 s nor ends with one sentence", violations),
		}, Run: func(ctx context.Context, r *bench.Run) error { return damageAgent(ctx, r, drawn) }},
	}
}

// counting counts damages that were not survived.
type counting struct {
	sheet *bench.Sheet
	id    string
	n     int
}

func (c *counting) add(d damaging, why string) {
	c.n++
	c.sheet.Note(c.id, "%s: %s", d, why)
}

// damageController damages each file of a controller that was stopped.
func damageController(ctx context.Context, r *bench.Run, draw *bench.Draw) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	c := p.controllers[0]
	if _, _, err := p.twoSides(ctx, "h1"); err != nil {
		return err
	}
	if _, err := p.joined(ctx); err != nil {
		return err
	}
	before, err := p.acknowledged(ctx)
	if err != nil {
		return err
	}
	if err := c.stop(syscall.SIGTERM); err != nil {
		return err
	}
	whole := c.dir
	c.dir = filepath.Join(p.dir, "damaged")
	all, err := damagings(whole, r.Quick)
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	served, lost := &counting{sheet: sheet, id: "damaged/controller/served"}, &counting{sheet: sheet, id: "damaged/controller/lost"}
	for n, d := range all {
		if n%20 == 0 {
			r.Say("%d of %d damages", n, len(all))
		}
		if err := d.copyDamaged(whole, c.dir, draw); err != nil {
			return err
		}
		if err := c.start(ctx); err != nil {
			return err
		}
		why, changed := p.servesAs(ctx, before)
		if err := c.stop(syscall.SIGKILL); err != nil {
			return err
		}
		if why != "" {
			served.add(d, why)
		}
		if changed != "" {
			lost.add(d, changed)
		}
	}
	sheet.Set(served.id, float64(served.n))
	sheet.Set(lost.id, float64(lost.n))
	sheet.Note(served.id, "%d damages", len(all))
	return nil
}

// acknowledged are the responses of a service, by path.
type acknowledged map[string]string

// acknowledged reads what an operator has changed.
func (p *place) acknowledged(ctx context.Context) (acknowledged, error) {
	a := p.ask(p.controllers[0])
	defer a.client.CloseIdleConnections()
	all := acknowledged{}
	for _, path := range []string{"/v1/hosts/h1/policy", "/v1/hosts/h1/interfaces", "/v1/tenants", "/v1/tokens", "/v1/audit"} {
		text, err := a.must(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		all[path] = string(text)
	}
	return all, nil
}

// servesAs waits until the controller serves what it has acknowledged, or has ended with one sentence: then why is "". changed is
// what it serves otherwise.
func (p *place) servesAs(ctx context.Context, before acknowledged) (why, changed string) {
	c := p.controllers[0]
	for until := time.Now().Add(repairTime); ; time.Sleep(50 * time.Millisecond) {
		select {
		case <-c.gone:
			return notOneSentence(c.said.String()), ""
		default:
		}
		asking, cancel := context.WithDeadline(ctx, until)
		now, err := p.acknowledged(asking)
		cancel()
		if err == nil {
			for path, text := range before {
				if now[path] != text {
					return "", fmt.Sprintf("%s was %.300s, is %.300s", path, text, now[path])
				}
			}
			return "", ""
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Sprintf("%v: %.300s", err, c.said), ""
		}
	}
}

// notOneSentence returns what is wrong with what a process has said before it ended.
func notOneSentence(said string) string {
	said = strings.TrimSpace(said)
	if said == "" || strings.Contains(said, "goroutine ") || strings.Count(said, "\n") >= maxSentences {
		return fmt.Sprintf("it ends without one sentence: %.600q", said)
	}
	return ""
}

// damageAgent damages each file of an agent that was killed, on a host whose kernel has lost the classes.
func damageAgent(ctx context.Context, r *bench.Run, draw *bench.Draw) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	e, err := p.enforce(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if _, err := e.changes(ctx, 2); err != nil {
		return err
	}
	before, err := e.look()
	if err != nil {
		return err
	}
	e.kill()
	whole := e.dir
	e.dir = filepath.Join(p.hosts, "damaged")
	all, err := damagings(whole, r.Quick)
	if err != nil {
		return err
	}
	enforced := &counting{sheet: r.Sheet(bench.Ours), id: "damaged/agent/enforced"}
	for n, d := range all {
		if n%20 == 0 {
			r.Say("%d of %d damages", n, len(all))
		}
		if err := d.copyDamaged(whole, e.dir, draw); err != nil {
			return err
		}
		if out, err := e.node.Command(ctx, "tc", "qdisc", "del", "dev", e.dev, "root").CombinedOutput(); err != nil && n == 0 {
			return fmt.Errorf("tc qdisc del: %w: %s", err, out)
		}
		e.said = &bench.Tail{Keep: keptOutput}
		if err := e.start(ctx); err != nil {
			return err
		}
		why, err := e.enforcesAs(ctx, before.classes)
		if err != nil {
			return err
		}
		if why != "" {
			enforced.add(d, why)
		}
	}
	enforced.sheet.Set(enforced.id, float64(enforced.n))
	enforced.sheet.Note(enforced.id, "%d damages", len(all))
	return e.start(ctx)
}

// enforcesAs waits until the agent has as many classes as before, or has ended with one sentence: then why is "". It kills the agent.
func (e *enforcing) enforcesAs(ctx context.Context, classes int) (why string, err error) {
	gone := make(chan struct{})
	go func() {
		_ = e.agent.Wait()
		close(gone)
	}()
	defer func() {
		_ = e.agent.Process.Kill()
		<-gone
	}()
	for until := time.Now().Add(repairTime); ; time.Sleep(50 * time.Millisecond) {
		now, err := e.look()
		if err != nil {
			return "", err
		}
		select {
		case <-gone:
			return notOneSentence(e.said.String()), nil
		default:
		}
		if now.classes == classes {
			return "", nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Sprintf("%d classes of %d: %.300s", now.classes, classes, e.said), ctx.Err()
		}
	}
}
