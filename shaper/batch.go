package shaper

// BatchShaper is a Shaper that processes many devices concurrently. If two hundred containers start
// at the same moment, they do not wait for each other.
type BatchShaper interface {
	Shaper
	// ObserveAll calls Observe for each of the devices.
	ObserveAll(devs []string) []Observed
	// ApplyAll calls Apply for each of the plans, which must be for different devices. Unlike
	// Apply, it leaves the objects of removed devices until Sweep.
	ApplyAll(plans []Plan) []Applied
	// Sweep removes the objects that removed devices left behind, and returns the names of
	// removed IFB devices among them.
	Sweep() (removed []string, err error)
}

// Observed is the result of Observe for one of several devices.
type Observed struct {
	State State
	Err   error
}

// Applied is the result of Apply for one of several plans.
type Applied struct {
	Changes []Change
	Err     error
}

// ObserveAll observes several devices, concurrently if the engine supports it.
func ObserveAll(s Shaper, devs []string) []Observed {
	if all, ok := s.(BatchShaper); ok {
		return all.ObserveAll(devs)
	}
	out := make([]Observed, len(devs))
	for i, dev := range devs {
		out[i].State, out[i].Err = s.Observe(dev)
	}
	return out
}

// ApplyAll applies the plans of several devices, concurrently if the engine supports it.
func ApplyAll(s Shaper, plans []Plan) []Applied {
	if all, ok := s.(BatchShaper); ok {
		return all.ApplyAll(plans)
	}
	out := make([]Applied, len(plans))
	for i, p := range plans {
		out[i].Changes, out[i].Err = s.Apply(p)
	}
	return out
}

// Sweep removes the objects that removed devices left behind. If the engine cannot sweep all
// devices, Sweep clears only the devices named in gone.
func Sweep(s Shaper, gone ...string) error {
	if all, ok := s.(BatchShaper); ok {
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
