package cli

import (
	"errors"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/view"
)

// Bounds of --interval. With a shorter interval, most of the time would be spent on reading counters.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
)

func topCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch groups live: rates against guarantees and limits",
		Long: `Top shows the current rate of each group against its guarantee and ceiling,
borrowed and lent rates, drops, CE marks, the queue delay, and the last 60 rates.
Keys: q quit, d next device, s sort, p pause, ? help.

If standard output is not a terminal, top prints a line for each group and interval,
and with -o json a line with one object for each interval. Rates are differences of
counters over the time between two readings. NO_COLOR in the environment disables
colours.

With --server, top shows the groups of a host of a service, as its agent reports them,
without control traffic, which agents do not report.`,
		Example: `  headgate top
  headgate top --dev eth0 --interval 250ms
  headgate top --dev eth0 --once
  headgate top --server default --host web1
  headgate top -o json | jq -c '.devices[].directions[].groups[]'`,
		Args: cobra.NoArgs,
	}
	dev := a.devFlag(c, "all", "one device, or all that have bandwidth groups", "all")
	interval := c.Flags().Duration("interval", time.Second, "time between two readings")
	once := c.Flags().Bool("once", false, "print one interval and exit")
	output, at := tableOrJSONFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *interval < minInterval || *interval > maxInterval {
			return usageError{fmt.Errorf("--interval %v is out of range: write %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		}
		source, now := a.watch(*dev), func() ([]shaper.State, error) { return a.states(*dev) }
		if at.isSet() {
			h, err := at.open()
			if err != nil {
				return err
			}
			source = h.Watch(c.Context(), *dev)
			now = source
		}
		// If the first read fails, top returns the error instead of an empty view.
		first, err := now()
		if err != nil {
			return err
		}
		width, live := view.Width(a.out)
		switch {
		case *output == "json":
			return a.topLines(source, *interval, *once, func(f view.Frame) error { return view.WriteJSON(a.out, f) })
		case live && *once:
			return a.topLines(source, *interval, true, func(f view.Frame) error { return view.WriteFrame(a.out, f, width) })
		case live:
			return a.topScreen(view.NewScreen(source, *interval, view.NewTheme(a.out)))
		}
		if len(first) == 0 {
			a.note("no device has bandwidth groups: create them with \"headgate apply -f FILE\"")
		}
		return a.topLines(source, *interval, *once, func(f view.Frame) error { return view.WriteLines(a.out, f) })
	}
	return c
}

// tableOrJSONFlag is outputFlag for commands that print repeatedly.
func tableOrJSONFlag(c *cobra.Command) *tableOrJSON {
	f := tableOrJSON("table")
	c.Flags().VarP(&f, "output", "o", "print as table, or as json with one object per line")
	completeFlag(c, "output", oneOf("table", "json"))
	return &f
}

type tableOrJSON string

func (f *tableOrJSON) String() string { return string(*f) }
func (f *tableOrJSON) Type() string   { return "table|json" }

// Set implements pflag.Value.
func (f *tableOrJSON) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("%q is not a format of this command: write table or json", s)
	}
	*f = tableOrJSON(s)
	return nil
}

// watch returns a source that observes one device or all. A device that was removed is left
// out, and is included again when it returns.
func (a *app) watch(dev string) view.Source {
	return func() ([]shaper.State, error) {
		states, err := a.states(dev)
		if errors.Is(err, shaper.ErrNotShaped) || errors.Is(err, shaper.ErrNoDevice) {
			return nil, nil
		}
		return states, err
	}
}

func (a *app) topScreen(screen tea.Model) error {
	ctx, stop := interrupted()
	defer stop()
	return view.Run(ctx, screen, a.in, a.out)
}

// topLines prints a frame for each interval.
func (a *app) topLines(source view.Source, interval time.Duration, once bool, print func(view.Frame) error) error {
	ctx, stop := interrupted()
	defer stop()
	var tracker view.Tracker
	return view.Poll(ctx, interval, once, source, func(states []shaper.State, first bool) error {
		if frame := tracker.Update(time.Now(), states); !first {
			return print(frame)
		}
		return nil
	})
}
