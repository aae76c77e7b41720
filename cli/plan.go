package cli

import (
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/rollout"
)

func planCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show the changes that apply would make",
		Long: `Plan compares the desired state with the kernel's actual state, and prints each
change that apply would make. A device without changes is "up to date".`,
		Example: `  headgate plan -f eth0.yaml
  headgate plan -f /etc/headgate -o json`,
		Args: cobra.NoArgs,
	}
	files, output := fileFlag(c), outputFlag(c)
	missing, at := ignoreMissingFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at.isSet() {
			if err := at.rejectFlags(c, "ignore-missing"); err != nil {
				return err
			}
			return a.applyRemote(c, at, *files, true, 0, *output)
		}
		return a.plan(c, *files, *missing, *output)
	}
	return c
}

func ignoreMissingFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("ignore-missing", false, "skip devices that do not exist, instead of failing")
}

func (a *app) plan(c *cobra.Command, files []string, ignoreMissing bool, f format) error {
	set, err := a.loadHere(c, files)
	if err != nil {
		return err
	}
	steps, err := a.steps(set, ignoreMissing)
	if err != nil {
		return err
	}
	changes := rollout.Entries(steps)
	return a.print(f, changes, func(w io.Writer) error { return diff.Write(w, changes) })
}

// steps compares the whole configuration with the kernel, and warns of what likely has no effect.
func (a *app) steps(set config.Set, ignoreMissing bool) ([]rollout.Step, error) {
	m := a.local()
	targets, err := m.Targets(set, ignoreMissing)
	if err != nil {
		return nil, err
	}
	a.warnSpeeds(set)
	a.warnPlacement(set, true)
	return m.Steps(targets)
}
