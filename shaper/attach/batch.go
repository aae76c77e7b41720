package attach

import (
	"runtime"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/netns"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
)

// devicesPerCPU is the number of devices processed concurrently per processor. An update of a map of
// maps (the departure hook's map of devices) returns only after all processors have passed a
// quiescent state, some 4 ms; other devices are processed in this time.
const devicesPerCPU = 3

// ApplyAll applies plans of different devices under the lock.
func ApplyAll(plans []shaper.Plan, engine group.Engine, apply func(*nl.Conn, *Device, shaper.Plan) ([]shaper.Change, error)) []shaper.Applied {
	out, devs := make([]shaper.Applied, len(plans)), make([]string, len(plans))
	for i, p := range plans {
		devs[i] = p.Dev
	}
	var errs []error
	err := Locked(func() error {
		errs = forEach(devs, engine, func(i int, c *nl.Conn, d *Device) (err error) {
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

// ObserveAll observes several devices concurrently.
func ObserveAll(devs []string, engine group.Engine, observe func(*nl.Conn, *Device) (shaper.State, error)) []shaper.Observed {
	out := make([]shaper.Observed, len(devs))
	for i, err := range forEach(devs, engine, func(i int, c *nl.Conn, d *Device) (err error) {
		out[i].State, err = observe(c, d)
		return err
	}) {
		out[i].Err = err
	}
	return out
}

// forEach is With for several devices, a few of them concurrently; errs[i] is the error of
// devs[i]. The qdiscs of the network namespace are listed once for all devices, because the
// kernel cannot list those of a single device: one list per device cost a third of a second for
// 200 devices. do must not change other devices or objects that devices share.
func forEach(devs []string, engine group.Engine, do func(i int, c *nl.Conn, d *Device) error) []error {
	errs := make([]error, len(devs))
	if len(devs) == 0 {
		return errs
	}
	listed, err := listQdiscs()
	list := func() ([]nl.Object, error) { return listed, err }
	netns.Each(len(devs), devicesPerCPU*runtime.GOMAXPROCS(0), func(i int) {
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
