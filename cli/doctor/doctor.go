package doctor

import (
	"io"
	"log/slog"

	"headgate/shaper"
)

// Options say what to look at.
type Options struct {
	// Engine is the one that is tried, the default one.
	Engine shaper.Shaper
	// Observe reads what is in force on a device, whichever engine made it.
	Observe func(dev string) (shaper.State, error)
	// Devices are looked at one by one.
	Devices []string
	// Measure asks for this machine's ceiling, which takes up to 2 s.
	Measure bool
}

// Examine looks at everything. Its error is for what stopped it; what is wrong
// with the machine is in the report.
func Examine(o Options) (Report, error) {
	// The trial's warnings are ours to word.
	speaker := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer slog.SetDefault(speaker)

	var r Report
	r.add(kernelVersion(), capabilities())
	modules := loadedModules()
	err := inNamespace(func() error {
		r.add(kernelParts()...)
		r.add(trial(o.Engine))
		if o.Measure {
			c, err := measure(o.Engine)
			r.Ceiling = c
			return err
		}
		return nil
	})
	modules.unloadNew()
	if forbidden(err) {
		r.add(Check{
			About: Machine, Name: "network namespace", State: Unknown, Needed: true,
			Means: "HTB, filters, IFB and eBPF are tried in one of our own", Remedy: "run it as root",
		})
		err = nil
	}
	if err != nil {
		return r, err
	}
	r.add(eBPF()...)
	r.add(connections()...)
	r.add(surroundings()...)
	r.add(bypassed(pciDrivers))
	for _, dev := range o.Devices {
		checks, err := device(dev, o, r.Ceiling)
		if err != nil {
			return r, err
		}
		r.add(checks...)
	}
	r.conclude()
	return r, nil
}
