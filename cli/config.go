package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"headgate/config"
	"headgate/internal/cgroup2"
)

// fileFlag gives a command the flag -f.
func fileFlag(c *cobra.Command) *[]string {
	var files []string
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "configuration: a file, a directory, or - for standard input (may be repeated)")
	return &files
}

// read reads configuration, and checks all that can be checked without a device.
func read(files []string, stdin io.Reader) (config.Set, error) {
	set, err := config.Load(files, stdin)
	if err == nil {
		err = enforceable(set)
	}
	return set, err
}

// loadInterfaces is load for commands that are about devices.
func (a *app) loadInterfaces(c *cobra.Command, files []string, here bool) (config.Set, error) {
	set, err := a.load(c, files, here)
	if err == nil && len(set.Interfaces) == 0 {
		err = config.Mistakes{{File: strings.Join(files, " "), Message: "there is no device in it to divide: write a document that begins with kind: Interface"}}
	}
	return set, err
}

// load is read, and, unless it is for another machine, finds the devices that it names on
// this one, and checks that the cgroups exist.
func (a *app) load(c *cobra.Command, files []string, here bool) (config.Set, error) {
	if len(files) == 0 {
		return config.Set{}, usageError{errors.New("there is no configuration: write -f and a file or directory"), c.CommandPath()}
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
