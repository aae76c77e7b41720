package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
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
			return a.applyRemote(c, at, *files, true, *output)
		}
		return a.plan(c, *files, *missing, *output)
	}
	return c
}

func ignoreMissingFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("ignore-missing", false, "skip devices that do not exist, instead of failing")
}

func (a *app) plan(c *cobra.Command, files []string, ignoreMissing bool, f format) error {
	set, err := a.loadInterfaces(c, files, true)
	if err != nil {
		return err
	}
	steps, err := a.steps(set, ignoreMissing)
	if err != nil {
		return err
	}
	return a.print(f, steps, func(w io.Writer) error { printSteps(w, steps); return nil })
}

func printSteps(w io.Writer, steps []step) {
	for _, s := range steps {
		name := s.Dev
		if s.Set != "" {
			name = "set " + s.Set
		}
		if len(s.Changes) == 0 {
			fmt.Fprintf(w, "%s: up to date\n", name)
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", name, text.Count(len(s.Changes), "change"))
		for _, change := range s.Changes {
			fmt.Fprintf(w, "  %v\n", change)
		}
	}
}

// step is the changes of one device, or of one connection set of a host of a service.
type step struct {
	Dev     string          `json:"dev,omitempty"`
	Set     string          `json:"set,omitempty"`
	Engine  group.Engine    `json:"engine,omitempty"`
	Changes []shaper.Change `json:"changes"`

	plan   shaper.Plan
	before pendingSnapshot // the actual state before the change
}

// steps compares the whole configuration with the kernel before the first change, so that
// a mistake or foreign traffic control on one device prevents changes on all devices. The
// error joins the errors of all devices.
func (a *app) steps(set config.Set, ignoreMissing bool) ([]step, error) {
	targets, err := a.targets(set, ignoreMissing)
	if err != nil {
		return nil, err
	}
	a.warnSpeeds(set)
	a.warnPlacement(set, true)
	steps := []step{}
	var failed []error
	for _, t := range targets {
		s, err := a.step(t)
		if err == nil {
			err = a.warnForeignPrograms(t.plan, t.source.Engine)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", t.source.Name(), err))
		}
		steps = append(steps, s)
	}
	return steps, errors.Join(failed...)
}

// warnForeignPrograms warns about foreign tcx programs that run before the classifier and can keep
// packets from it. They are no error, because most of them pass on all packets.
func (a *app) warnForeignPrograms(p shaper.Plan, engine group.Engine) error {
	sooner, err := a.foreignPrograms(p.Dev)
	for side, d := range attach.Directions(p) {
		for _, what := range sooner[side] {
			if d.Tree != nil {
				a.note("headgate: warning: %s: %s runs before Headgate's classifier: packets that it accepts, other than with TCX_NEXT, are in no group of %q, and %s", p.Dev, what, d, bypassEffect(engine, side))
			}
		}
	}
	return err
}

// bypassEffect describes the effect on packets that bypass the classifier. HTB puts them in the
// class of control traffic, whose ceiling is shaper/htb's controlCeiling.
func bypassEffect(engine group.Engine, side int) string {
	if engine == group.HTB && side == attach.Egress {
		return "share at most a quarter of its limit with control traffic"
	}
	return "are not limited"
}

func (a *app) step(t target) (step, error) {
	s := step{Dev: t.plan.Dev, Engine: t.source.Engine, Changes: []shaper.Change{}, plan: t.plan, before: pendingSnapshot{Dev: t.plan.Dev}}
	engine, err := a.engine(s.Engine)
	if err != nil {
		return s, err
	}
	now, err := a.observe(s.Dev)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
	case err != nil:
		return s, err
	default:
		s.before.Engine, s.before.Plan = now.Engine, &now.Plan
		if now.Engine != s.Engine {
			s.Changes = append(s.Changes, shaper.Change{Verb: "remove", Object: "engine " + string(now.Engine)})
		}
	}
	changes, err := engine.Diff(s.plan)
	s.Changes = append(s.Changes, changes...)
	return s, err
}
