package doctor

import (
	"io"
	"log/slog"

	"headgate.dev/headgate/shaper"
)

// Options select the checks.
type Options struct {
	// Engine is the engine to try.
	Engine shaper.Shaper
	// Observe reads the state of a device, whichever engine shapes it.
	Observe func(dev string) (shaper.State, error)
	// Devices are the devices to check.
	Devices []string
	// OpenVSwitch is the address of the database of this machine's Open vSwitch, such as ovsdb.LocalAddress returns;
	// "" does not check it.
	OpenVSwitch string
	// Measure enables the measurement of this machine's throughput, which takes up to 2 s.
	Measure bool
}

// Run runs all checks. It returns an error if it could not complete them; problems of
// the machine are in the report.
func Run(o Options) (Report, error) {
	// Discard the engine's warnings: the checks report the problems.
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
			r.Throughput = c
			return err
		}
		return nil
	})
	modules.unloadNew()
	if forbidden(err) {
		r.add(Check{
			About: Machine, Name: "network namespace", State: Unknown, Needed: true,
			Meaning: "the checks of HTB, filters, IFB and eBPF need a new network namespace", Remedy: "run doctor as root",
		})
		err = nil
	}
	if err != nil {
		return r, err
	}
	r.add(eBPF()...)
	r.add(connections()...)
	r.add(environment()...)
	r.add(passedThroughCards(pciDrivers))
	if o.OpenVSwitch != "" {
		r.add(fabric(o.OpenVSwitch, vswitchd)...)
	}
	for _, dev := range o.Devices {
		checks, err := device(dev, o, r.Throughput)
		if err != nil {
			return r, err
		}
		r.add(checks...)
	}
	r.conclude()
	return r, nil
}
