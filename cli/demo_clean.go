package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"headgate/lab"
)

const (
	// demoPrefix begins the names of the demo's networks.
	demoPrefix = "demo"
	// demoRun holds the demo's configurations, in folders named as the networks.
	demoRun = "/run/headgate/demo"
	// namespaces are known by their files there.
	namespaces = "/run/netns"
)

// demoName is what lab.UniqueName makes of the prefix.
var demoName = regexp.MustCompile("^" + demoPrefix + `(-\d+)+$`)

func makeDemoDir(name string) (string, error) {
	dir := filepath.Join(demoRun, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("the demo's folder cannot be made: %w", err)
	}
	return dir, nil
}

// sweepDemos removes what killed demos left.
func (a *app) sweepDemos(stage demoStage) error {
	labs, err := lab.Leftovers()
	if err != nil {
		return err
	}
	standing := map[string]bool{}
	for _, l := range labs {
		if !demoName.MatchString(l.Name) || l.InUse || l.Kept {
			standing[l.Name] = true
			continue
		}
		// The groups first: part of them is outside the namespaces. What is too
		// broken to enter has none.
		if old, err := lab.Attach(l.Name); err == nil {
			err = old.Node("server").Do(func() error { return a.clear(demoDev) })
			if err = errors.Join(err, old.Close()); err != nil {
				return fmt.Errorf("the groups that a killed demo left: %w", err)
			}
		}
		if err := lab.Down(l.Name); err != nil {
			return err
		}
		stage.say(fmt.Sprintf("Removed %s, which a killed demo left.", l.Name))
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

// clean removes the groups, the network and the configuration, and looks whether
// they are gone: result, if there is one, gets what was seen.
func (p *play) clean(result *demoResult) error {
	name := p.lab.Topology.Name
	err := errors.Join(
		p.within(func() error { return p.clear(demoDev) }),
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
