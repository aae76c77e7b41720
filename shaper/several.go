package shaper

// Several is a Shaper that does for many devices at once what it does for one after the other, in
// less time: two hundred containers that start at the same moment do not wait for each other.
type Several interface {
	Shaper
	// ObserveAll is Observe for each of the devices.
	ObserveAll(devs []string) []Observed
	// ApplyAll is Apply for each of the plans, which are of different devices, except that
	// what devices left that are gone stays until Sweep.
	ApplyAll(plans []Plan) []Applied
	// Sweep removes what devices left that are gone, and names the devices among it.
	Sweep() (removed []string, err error)
}

// Observed is what Observe gives for one of several devices.
type Observed struct {
	State State
	Err   error
}

// Applied is what Apply gives for one of several plans.
type Applied struct {
	Changes []Change
	Err     error
}

// ObserveAll observes several devices, at once if the engine can.
func ObserveAll(s Shaper, devs []string) []Observed {
	if all, ok := s.(Several); ok {
		return all.ObserveAll(devs)
	}
	out := make([]Observed, len(devs))
	for i, dev := range devs {
		out[i].State, out[i].Err = s.Observe(dev)
	}
	return out
}

// ApplyAll applies plans of several devices, at once if the engine can.
func ApplyAll(s Shaper, plans []Plan) []Applied {
	if all, ok := s.(Several); ok {
		return all.ApplyAll(plans)
	}
	out := make([]Applied, len(plans))
	for i, p := range plans {
		out[i].Changes, out[i].Err = s.Apply(p)
	}
	return out
}

// Sweep removes what devices left that are gone: for one that is gone, at least, if the engine
// cannot do it for all.
func Sweep(s Shaper, gone ...string) error {
	if all, ok := s.(Several); ok {
		_, err := all.Sweep()
		return err
	}
	for _, dev := range gone {
		if err := s.Clear(dev); err != nil {
			return err
		}
	}
	return nil
}
