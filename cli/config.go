package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/shaper/engines"
)

// fileFlag adds the flag -f to a command.
func fileFlag(c *cobra.Command) *[]string {
	var files []string
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "configuration: a file, a directory, or - for standard input (may be repeated)")
	return &files
}

// read reads a configuration and validates all that needs no device.
func read(files []string, stdin io.Reader) (config.Set, error) {
	set, err := config.Load(files, stdin)
	if err == nil {
		err = engines.CheckSet(set)
	}
	return set, err
}

// only returns the one document of a kind that files have; place returns where a document is.
func only[T any](kind string, files []string, all []T, place func(T) (file string, line int)) (one T, err error) {
	switch len(all) {
	case 0:
		return one, config.Errors{{File: strings.Join(files, " "), Message: "no document of kind: " + kind + " is in the configuration: add one, or set -f to a file that has one"}}
	case 1:
		return all[0], nil
	}
	first, at := place(all[0])
	file, line := place(all[1])
	return one, config.Errors{{File: file, Line: line, Message: fmt.Sprintf("this is the second of %d documents of kind: %s, the first is %s:%d: keep one, or write each in a file of its own and set -f to one of them", len(all), kind, first, at)}}
}

// loadInterfaces is load for commands that need at least one device in the configuration.
func (a *app) loadInterfaces(c *cobra.Command, files []string, here bool) (config.Set, error) {
	set, err := a.load(c, files, here)
	if err == nil && len(set.Interfaces) == 0 {
		err = config.Errors{{File: strings.Join(files, " "), Message: "no interface is configured: add a document that begins with kind: Interface" + readers(set)}}
	}
	return set, err
}

// readers names the kinds of documents that configure no device, with the command that reads each. It begins with a
// semicolon, unless there are none.
func readers(set config.Set) (out string) {
	for _, k := range []struct {
		kind, command string
		documents     int
	}{
		{"Collective", "headgate collective run", len(set.Collectives)},
		{"Controllers", "headgate controller", len(set.Controllers)},
		{"Network", "headgate network apply", len(set.Networks)},
		{"Reservation", "headgate reserve apply", len(set.Reservations)},
		{"Relay", "headgate relay run", len(set.Relays)},
		{"Servers", "headgate probe mesh", len(set.Servers)},
	} {
		if k.documents > 0 {
			out += fmt.Sprintf("; kind: %s is for \"%s\"", k.kind, k.command)
		}
	}
	return out
}

// loadHere is loadInterfaces for commands that change or compare this machine, which keeps no reservations.
func (a *app) loadHere(c *cobra.Command, files []string) (config.Set, error) {
	set, err := a.loadInterfaces(c, files, true)
	if mistakes := reservationsNot(set, "a reservation needs a controller, which grants it across the network, and "+c.Name()+" without --server changes this machine alone"); mistakes != nil {
		return set, mistakes
	}
	if err == nil {
		err = tenantsNot(set, c.CommandPath())
	}
	return set, err
}

// tenantsNot returns a mistake for each document that gives groups to tenants, for commands that change or compare this machine, nil if
// there is none.
func tenantsNot(set config.Set, command string) error {
	var mistakes config.Errors
	for _, i := range set.Interfaces {
		for at, tenant := range i.Tenants() {
			mistakes = append(mistakes, config.Error{File: i.File, Line: i.Line, Key: "tenant", Message: fmt.Sprintf(
				"group %s is of tenant %s, and only a service has tenants: write the key in a file for \"headgate apply --server\", and remove it from one for \"%s\"", at, tenant, command)})
		}
	}
	if mistakes == nil {
		return nil
	}
	return mistakes
}

// reservationsNot returns a mistake for each reservation, for commands that do not create them, nil if there is none.
func reservationsNot(set config.Set, why string) error {
	if len(set.Reservations) == 0 {
		return nil
	}
	mistakes := make(config.Errors, len(set.Reservations))
	for i, r := range set.Reservations {
		mistakes[i] = config.Error{File: r.File, Line: r.Line, Key: "kind", Message: fmt.Sprintf(
			"%s: write reservation %s in a file of its own, and create it with \"headgate reserve apply -f FILE\"", why, r.Name)}
	}
	return mistakes
}

// load reads a configuration. If the configuration is for this machine (here), load also resolves
// alternative names of devices, and checks that the cgroups exist.
func (a *app) load(c *cobra.Command, files []string, here bool) (config.Set, error) {
	if len(files) == 0 {
		return config.Set{}, usageError{errors.New("configuration is missing: set -f to a file or directory"), c.CommandPath()}
	}
	set, err := read(files, a.in)
	if err == nil && here {
		set, err = a.named(set)
	}
	if err != nil || !here || !set.HasCgroups() {
		return set, err
	}
	mount, err := cgroup2.Mount()
	if err != nil {
		return set, err
	}
	return set, set.CheckCgroups(mount)
}
