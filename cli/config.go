package cli

import (
	"errors"
	"io"

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

// load is read, and, unless it is for another machine, checks that the cgroups it
// names exist on this one.
func (a *app) load(c *cobra.Command, files []string, here bool) (config.Set, error) {
	if len(files) == 0 {
		return config.Set{}, usageError{errors.New("there is no configuration: write -f and a file or directory"), c.CommandPath()}
	}
	set, err := read(files, a.in)
	if err != nil || !here || !set.HasCgroups() {
		return set, err
	}
	mount, err := cgroup2.Mount()
	if err != nil {
		return set, err
	}
	return set, set.CheckCgroups(mount)
}
