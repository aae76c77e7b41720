package demo

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

	"headgate.dev/headgate/lab"
)

const (
	// prefix is the prefix of the names of the demos' networks.
	prefix = "demo"
	// Dir has a directory for each demo, named like its network.
	Dir = "/run/headgate/demo"
	// namespaces is the directory with a file for each named network namespace.
	namespaces = "/run/netns"
)

// nameRE matches the names that lab.UniqueName generates with the prefix.
var nameRE = regexp.MustCompile("^" + prefix + `(-\d+)+$`)

func makeDir(name string) (string, error) {
	dir := filepath.Join(Dir, name)
	// The directory has tokens and keys.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create the demo's directory: %w", err)
	}
	return dir, nil
}

// End stops and removes demos that are served, or were kept or killed.
func End(o Options) error {
	d := &deployment{Options: o, stage: &lineStage{w: o.Out}}
	stopped, err := d.stopServed()
	if err != nil {
		return err
	}
	removed, err := d.sweep(true)
	if err == nil && stopped+removed == 0 {
		d.stage.say("No demo to stop or remove.")
	}
	return err
}

// sweep removes what killed demos left, and if kept is true, also kept demos. It returns how many.
func (d *deployment) sweep(kept bool) (removed int, err error) {
	labs, err := lab.Leftovers()
	if err != nil {
		return removed, err
	}
	standing := map[string]bool{}
	for _, l := range labs {
		if !nameRE.MatchString(l.Name) || l.InUse || l.Kept && !kept {
			standing[l.Name] = true
			continue
		}
		// A network that is too broken to enter has no groups.
		if old, err := lab.Attach(l.Name); err == nil {
			if err = errors.Join(d.clearHosts(old), old.Close()); err != nil {
				return removed, fmt.Errorf("cannot remove the groups of demo %s: %w", l.Name, err)
			}
		}
		if err := lab.Down(l.Name); err != nil {
			return removed, err
		}
		removed++
		if l.Kept {
			d.stage.say(fmt.Sprintf("Removed the kept demo %s.", l.Name))
		} else {
			d.stage.say(fmt.Sprintf("Removed the remains of the killed demo %s.", l.Name))
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(Dir, "*"))
	for _, dir := range dirs {
		if !standing[filepath.Base(dir)] {
			if err := os.RemoveAll(dir); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// stopServed sends SIGTERM to demos that are served, and waits until they have cleaned up. It
// returns how many.
func (d *deployment) stopServed() (stopped int, err error) {
	served := func(l lab.Leftover) bool { return nameRE.MatchString(l.Name) && l.Held && l.InUse }
	labs, err := lab.Leftovers()
	if err != nil {
		return stopped, err
	}
	for _, l := range labs {
		if !served(l) {
			continue
		}
		if err := syscall.Kill(l.Owner, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return stopped, fmt.Errorf("cannot stop process %d, which serves %s: %w", l.Owner, l.Name, err)
		}
		for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
			now, err := lab.Leftovers()
			if err != nil {
				return stopped, err
			}
			if !slices.ContainsFunc(now, func(n lab.Leftover) bool { return n.Name == l.Name && served(n) }) {
				break
			}
			if time.Now().After(deadline) {
				return stopped, fmt.Errorf("process %d, which serves %s, is still running %v after SIGTERM: kill it, and try again", l.Owner, l.Name, timeout)
			}
		}
		stopped++
		d.stage.say(fmt.Sprintf("Stopped the served demo %s.", l.Name))
	}
	return stopped, nil
}

// clearHosts stops the processes in a demo's network, because its agents would apply the groups
// again, and removes the groups, because a part of them is outside the namespaces.
func (d *deployment) clearHosts(l *lab.Lab) error {
	err := l.End()
	for _, device := range l.Topology.Devices() {
		if host, found := l.Host(device.Node); found == nil {
			err = errors.Join(err, host.Do(func() error { return d.Clear(device.Device) }))
		}
	}
	return err
}

// clean removes the service, the groups, the network and the configuration, and returns what is left.
func (d *deployment) clean() (left []string, err error) {
	name := d.lab.Topology.Name
	d.stopProcesses()
	err = errors.Join(
		d.clearHosts(d.lab),
		d.lab.Close(),
		os.RemoveAll(filepath.Join(Dir, name)),
	)
	_ = os.Remove(Dir) // fails unless this was the last demo
	return remains(name), err
}

// cleanServed is clean, and says the outcome.
func (d *deployment) cleanServed() error {
	left, err := d.clean()
	switch {
	case len(left) > 0:
		d.stage.say("", "NOT cleaned up: "+strings.Join(left, ", "))
	case err == nil:
		d.stage.say("", fmt.Sprintf("Cleaned up: the network %s and all in it are removed.", d.lab.Topology.Name))
	}
	return err
}

// remains lists the remains of a demo.
func remains(name string) (left []string) {
	labs, err := lab.Leftovers()
	if err != nil {
		left = append(left, err.Error())
	}
	for _, l := range labs {
		if l.Name == name {
			left = append(left, "network "+name)
		}
	}
	for _, pattern := range []string{filepath.Join(namespaces, "hg-"+name+"-*"), filepath.Join(Dir, name)} {
		files, _ := filepath.Glob(pattern)
		left = append(left, files...)
	}
	return left
}
