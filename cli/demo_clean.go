package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate/lab"
)

const (
	// demoPrefix begins the names of the demo's networks.
	demoPrefix = "demo"
	// demoRun holds what the demos' services keep, in folders named as the networks.
	demoRun = "/run/headgate/demo"
	// namespaces are known by their files there.
	namespaces = "/run/netns"
)

// demoName is what lab.UniqueName makes of the prefix.
var demoName = regexp.MustCompile("^" + demoPrefix + `(-\d+)+$`)

func makeDemoDir(name string) (string, error) {
	dir := filepath.Join(demoRun, name)
	// It holds tokens and keys.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the demo's folder cannot be made: %w", err)
	}
	return dir, nil
}

// sweepDemos removes what killed demos left, and with kept those that were left on purpose.
func (a *app) sweepDemos(say func(lines ...string), kept bool) error {
	labs, err := lab.Leftovers()
	if err != nil {
		return err
	}
	standing := map[string]bool{}
	for _, l := range labs {
		if !demoName.MatchString(l.Name) || l.InUse || l.Kept && !kept {
			standing[l.Name] = true
			continue
		}
		// What is too broken to enter has no groups.
		if old, err := lab.Attach(l.Name); err == nil {
			if err = errors.Join(a.clearHosts(old), old.Close()); err != nil {
				return fmt.Errorf("the groups that a demo left: %w", err)
			}
		}
		if err := lab.Down(l.Name); err != nil {
			return err
		}
		if l.Kept {
			say(fmt.Sprintf("Removed %s, which was kept.", l.Name))
		} else {
			say(fmt.Sprintf("Removed %s, which a killed demo left.", l.Name))
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(demoRun, "*"))
	for _, dir := range dirs {
		if !standing[filepath.Base(dir)] {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// endServed asks demos that are served to end, and waits until they have cleaned up.
func endServed(say func(lines ...string)) error {
	served := func(l lab.Leftover) bool { return demoName.MatchString(l.Name) && l.Held && l.InUse }
	labs, err := lab.Leftovers()
	if err != nil {
		return err
	}
	for _, l := range labs {
		if !served(l) {
			continue
		}
		if err := syscall.Kill(l.Owner, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d, which serves %s, cannot be ended: %w", l.Owner, l.Name, err)
		}
		for deadline := time.Now().Add(demoPatience); ; time.Sleep(50 * time.Millisecond) {
			now, err := lab.Leftovers()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(now, func(n lab.Leftover) bool { return n.Name == l.Name && served(n) }) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d, which serves %s, does not end: kill it, and try again", l.Owner, l.Name)
			}
		}
		say(fmt.Sprintf("Ended %s, which was served.", l.Name))
	}
	return nil
}

// clearHosts ends what runs in a demo's network, which would put groups in force anew, and
// takes the groups away: a part of them is outside the namespaces.
func (a *app) clearHosts(l *lab.Lab) error {
	err := l.End()
	for _, name := range demoHosts {
		if host, found := l.Host(name); found == nil {
			err = errors.Join(err, host.Do(func() error { return a.clear(demoDev) }))
		}
	}
	return err
}

// clean removes the service, the groups, the network and the configuration, and looks whether
// they are gone: result, if there is one, gets what was seen.
func (p *play) clean(result *demoResult) error {
	name := p.lab.Topology.Name
	p.stopProcesses()
	err := errors.Join(
		p.clearHosts(p.lab),
		p.lab.Close(),
		os.RemoveAll(filepath.Join(demoRun, name)),
	)
	_ = os.Remove(demoRun) // if it was the last
	left := demoLeft(name)
	cleaned := err == nil && len(left) == 0
	switch {
	case result != nil:
		result.Left, result.CleanedUp, result.OK = left, cleaned, result.OK && cleaned
	case cleaned:
		p.stage.say("", fmt.Sprintf("Cleaned up: the network %s and all in it is gone.", name))
	case len(left) > 0:
		p.stage.say("", "NOT cleaned up: "+strings.Join(left, ", "))
	}
	return err
}

// demoLeft lists what can still be seen of a demo.
func demoLeft(name string) (left []string) {
	labs, err := lab.Leftovers()
	if err != nil {
		left = append(left, err.Error())
	}
	for _, l := range labs {
		if l.Name == name {
			left = append(left, "network "+name)
		}
	}
	for _, pattern := range []string{filepath.Join(namespaces, "hg-"+name+"-*"), filepath.Join(demoRun, name)} {
		files, _ := filepath.Glob(pattern)
		left = append(left, files...)
	}
	return left
}
