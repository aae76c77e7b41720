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
	// demoPrefix is the prefix of the names of the demo's networks.
	demoPrefix = "demo"
	// demoRun has the data directories of the demos' services, named like the networks.
	demoRun = "/run/headgate/demo"
	// namespaces is the directory with a file for each named network namespace.
	namespaces = "/run/netns"
)

// demoName matches the names that lab.UniqueName generates with the prefix.
var demoName = regexp.MustCompile("^" + demoPrefix + `(-\d+)+$`)

func makeDemoDir(name string) (string, error) {
	dir := filepath.Join(demoRun, name)
	// The directory has tokens and keys.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create the demo's directory: %w", err)
	}
	return dir, nil
}

// sweepDemos removes what killed demos left, and if kept is true, also kept demos.
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
		// A network that is too broken to enter has no groups.
		if old, err := lab.Attach(l.Name); err == nil {
			if err = errors.Join(a.clearHosts(old), old.Close()); err != nil {
				return fmt.Errorf("cannot remove the groups of demo %s: %w", l.Name, err)
			}
		}
		if err := lab.Down(l.Name); err != nil {
			return err
		}
		if l.Kept {
			say(fmt.Sprintf("Removed the kept demo %s.", l.Name))
		} else {
			say(fmt.Sprintf("Removed the remains of the killed demo %s.", l.Name))
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

// endServed sends SIGTERM to demos that are served, and waits until they have cleaned up.
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
			return fmt.Errorf("cannot stop process %d, which serves %s: %w", l.Owner, l.Name, err)
		}
		for deadline := time.Now().Add(demoTimeout); ; time.Sleep(50 * time.Millisecond) {
			now, err := lab.Leftovers()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(now, func(n lab.Leftover) bool { return n.Name == l.Name && served(n) }) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d, which serves %s, is still running %v after SIGTERM: kill it, and try again", l.Owner, l.Name, demoTimeout)
			}
		}
		say(fmt.Sprintf("Stopped the served demo %s.", l.Name))
	}
	return nil
}

// clearHosts stops the processes in a demo's network, because its agents would apply the groups
// again, and removes the groups, because a part of them is outside the namespaces.
func (a *app) clearHosts(l *lab.Lab) error {
	err := l.End()
	for _, name := range demoHosts {
		if host, found := l.Host(name); found == nil {
			err = errors.Join(err, host.Do(func() error { return a.clear(demoDev) }))
		}
	}
	return err
}

// clean removes the service, the groups, the network and the configuration, and checks that
// nothing is left. It stores the outcome in result, unless result is nil.
func (p *play) clean(result *demoResult) error {
	name := p.lab.Topology.Name
	p.stopProcesses()
	err := errors.Join(
		p.clearHosts(p.lab),
		p.lab.Close(),
		os.RemoveAll(filepath.Join(demoRun, name)),
	)
	_ = os.Remove(demoRun) // fails unless this was the last demo
	left := demoLeft(name)
	cleaned := err == nil && len(left) == 0
	switch {
	case result != nil:
		result.Left, result.CleanedUp, result.OK = left, cleaned, result.OK && cleaned
	case cleaned:
		p.stage.say("", fmt.Sprintf("Cleaned up: the network %s and all in it are removed.", name))
	case len(left) > 0:
		p.stage.say("", "NOT cleaned up: "+strings.Join(left, ", "))
	}
	return err
}

// demoLeft lists the remains of a demo.
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
