package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
)

// completion computes the words that a shell offers.
type completion = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completeFlag registers the completion of a flag's value.
func completeFlag(c *cobra.Command, flag string, complete completion) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // a bug: the flag does not exist, or is registered twice
	}
}

// oneOf offers fixed words.
func oneOf(words ...string) completion {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeNames offers the words that list returns. An error of list is not shown.
func names(list func(c *cobra.Command) ([]string, error)) completion {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		words, err := list(c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeDevices offers the devices that can be shaped, and the words in more.
func (a *app) completeDevices(more ...string) completion {
	return names(func(*cobra.Command) ([]string, error) {
		devices, err := a.devices()
		devices = slices.DeleteFunc(devices, func(d string) bool { return d != "lo" && !group.MatchesDevice("*", d) })
		if a.alternatives != nil && err == nil {
			if all, err := a.alternatives(); err == nil {
				for _, d := range slices.Clone(devices) {
					devices = append(devices, all[d]...)
				}
			}
		}
		return append(devices, more...), err
	})
}

// completeGroups offers the groups in force on the device of --dev, or on all devices.
func (a *app) completeGroups() completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(a.groupsInForce)(c, args, begun)
	}
}

// completeDemands offers the groups in force, each to be followed by its demand.
func (a *app) completeDemands() completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		paths, directive := names(a.groupsInForce)(c, args, begun)
		for n := range paths {
			paths[n] += "="
		}
		return paths, directive | cobra.ShellCompDirectiveNoSpace
	}
}

func (a *app) groupsInForce(c *cobra.Command) (paths []string, err error) {
	dev := c.Flag("dev").Value.String()
	if dev == "" {
		dev = "all"
	}
	var states []shaper.State
	if states, err = a.states(dev); err != nil {
		return nil, err
	}
	for _, s := range states {
		for _, t := range []*group.Tree{s.Plan.Out, s.Plan.In} {
			if t == nil {
				continue
			}
			for _, n := range t.Nodes {
				if n.Leaf {
					paths = append(paths, n.Path)
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// completeLabs offers the labs of this machine.
var completeLabs = names(func(*cobra.Command) (found []string, err error) {
	labs, err := lab.Leftovers()
	for _, l := range labs {
		found = append(found, l.Name)
	}
	return found, err
})
