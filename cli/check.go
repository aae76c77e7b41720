package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent/remote"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/summary"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/shaper/engines"
)

func checkCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Validate a configuration without changing anything",
		Long: `Check reads the configuration and prints every error with its file, line and key, and
the remedy. If there are no errors it prints the parsed configuration: devices,
directions, groups and rules. It needs no privileges.

With --server, the controller also validates the configuration for one of its hosts, and
check warns of conflicts with the state that the host's agent reported: devices that do
not exist, devices that the host's local files configure, and limits above a link's
speed.`,
		Example: `  headgate check -f /etc/headgate
  headgate check -f eth0.yaml -o json
  headgate check -f web1.yaml --server default --host web1
  generate-config | headgate check -f - --offline`,
		Args: cobra.NoArgs,
	}
	files, output := fileFlag(c), outputFlag(c)
	offline := c.Flags().Bool("offline", false, "the configuration is for another machine: do not check that its cgroups exist on this one")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		here := !*offline && !at.isSet()
		var set config.Set
		var err error
		if len(*files) > 0 && !at.isSet() && config.NoFiles(*files) && remote.HasJoined(filepath.Join(a.state, filepath.Base(agentDir))) {
			a.note("no configuration files in %s: the controller configures this host", strings.Join(*files, " "))
		} else {
			set, err = a.load(c, *files, here)
		}
		if err == nil && at.isSet() {
			err = a.checkRemote(c.Context(), at, set)
		}
		var mistakes config.Errors
		if err != nil && (*output == "table" || !asMistakes(err, &mistakes)) {
			return err
		}
		report := summary.Report{Errors: mistakes}
		if err == nil {
			report = summary.Of(set)
			a.notes(summary.Notes(set))
			a.warnPlacement(set, here)
			a.notes(engines.Notes(set))
			if here {
				if mount, err := cgroup2.Mount(); err == nil {
					a.notes(set.CgroupNotes(mount))
				}
				a.warnSpeeds(set)
				a.warn(placement.Sets(set))
			}
		}
		if err := a.print(*output, report, report.Write); err != nil {
			return err
		}
		if !report.OK {
			return errInvalidReported
		}
		return nil
	}
	return c
}

// asMistakes sets mistakes to those in a configuration, or in a request that the service rejects. It reports
// whether err is one of these.
func asMistakes(err error, mistakes *config.Errors) bool {
	if errors.Is(err, api.ErrInvalid) {
		*mistakes = config.Errors{{File: "service", Message: err.Error()}}
		return true
	}
	return errors.As(err, mistakes)
}
