package attach

import (
	"runtime"

	"headgate/group"
	"headgate/internal/netns"
	"headgate/internal/nl"
	"headgate/shaper"
)

// together is how many devices are worked on at the same time, for each processor: a map of maps
// that is written to (the departure hook's, of devices) is not done before all processors have
// passed a quiet state, some 4 ms, and others work meanwhile.
const together = 3

// ApplyAll applies plans of different devices, while no other process changes a device.
func ApplyAll(plans []shaper.Plan, engine group.Engine, apply func(*nl.Conn, *Device, shaper.Plan) ([]shaper.Change, error)) []shaper.Applied {
	out, devs := make([]shaper.Applied, len(plans)), make([]string, len(plans))
	for i, p := range plans {
		devs[i] = p.Dev
	}
	var errs []error
	err := Locked(func() error {
		errs = several(devs, engine, func(i int, c *nl.Conn, d *Device) (err error) {
			out[i].Changes, err = apply(c, d, plans[i])
			return err
		})
		return nil
	})
	for i := range out {
		if out[i].Err = err; err == nil {
			out[i].Err = errs[i]
		}
	}
	return out
}

// ObserveAll observes several devices.
func ObserveAll(devs []string, engine group.Engine, observe func(*nl.Conn, *Device) (shaper.State, error)) []shaper.Observed {
	out := make([]shaper.Observed, len(devs))
	for i, err := range several(devs, engine, func(i int, c *nl.Conn, d *Device) (err error) {
		out[i].State, err = observe(c, d)
		return err
	}) {
		out[i].Err = err
	}
	return out
}

// several is With for several devices, a few at the same time; the error of each is in its place.
// The qdiscs of the network namespace are listed once for all of them, as the kernel does not list
// those of one device alone: asked for each of 200 devices that was a third of a second. What is
// done with one device must leave the others', and what all have in common, alone.
func several(devs []string, engine group.Engine, do func(i int, c *nl.Conn, d *Device) error) []error {
	errs := make([]error, len(devs))
	if len(devs) == 0 {
		return errs
	}
	listed, err := listQdiscs()
	list := func() ([]nl.Object, error) { return listed, err }
	netns.Each(len(devs), together*runtime.GOMAXPROCS(0), func(i int) {
		errs[i] = func() error {
			c, err := nl.Open()
			if err != nil {
				return permission(err)
			}
			defer c.Close()
			return permission(withQdiscs(c, devs[i], engine, list, func(c *nl.Conn, d *Device) error { return do(i, c, d) }))
		}()
	})
	return errs
}

func listQdiscs() ([]nl.Object, error) {
	c, err := nl.Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return qdiscs(c)
}
