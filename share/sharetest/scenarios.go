package sharetest

import (
	"math/rand/v2"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// The organisation of the experiments (reservations, section 4.3 and figure 5.1).
const (
	// LinkRate is the capacity of each link between switches.
	LinkRate = 5 * unit.Mbit
	// IntervalCycles is the number of cycles, of 1 s, for which a flow keeps its rate.
	IntervalCycles = 10
	// RandomIntervals is the number of intervals of a random trial.
	RandomIntervals = 30
)

// Flow is one row of tables 4.1 to 4.4.
type Flow struct {
	Name  string
	Class int // of share.ReservedFlow
	// Reserved is the reservation; for best effort, the unreserved bandwidth.
	Reserved unit.Rate
	// Min and Max bound the rates of the random trial.
	Min, Max unit.Rate
	// Waveform has the rates of the controlled trial, by interval.
	Waveform []unit.Rate
}

// Scenario is one of tables 4.1 to 4.4, at LinkRate.
type Scenario struct {
	// Unreserved is the part of the bottleneck for best effort, in percent.
	Unreserved int
	// Paper is false for the tables that the text of the thesis lacks.
	Paper bool
	Flows []Flow
}

// Scenarios are the four scenarios, by unreserved bandwidth. Those of 20 and 50 % are tables 4.1
// and 4.4. Tables 4.2 and 4.3 are lost in the text that we have. Of them only the sums of QoS1
// and QoS2 and of QoS3 and QoS4 are known (table 5.1), and ours have these sums. Their rates
// above and below the reservations are between those of tables 4.1 and 4.4, at one and two
// thirds of the way, in steps of 50 kbit/s like the others.
var Scenarios = []Scenario{
	{20, true, []Flow{
		qos(1, 700, 550, 750, 700, 550, 600, 600, 700, 750, 700, 700, 650, 650),
		qos(2, 1200, 1200, 1850, 1200, 1300, 1300, 1350, 1450, 1650, 1700, 1850, 1700, 1450),
		qos(3, 1100, 600, 1250, 1100, 1250, 1100, 1050, 800, 750, 700, 600, 850, 1000),
		qos(4, 1000, 950, 1200, 1000, 1100, 1150, 1100, 1100, 1050, 1200, 1150, 1000, 950),
		bestEffort(1000),
	}},
	{30, false, []Flow{
		qos(1, 600, 500, 750, 600, 550, 600, 600, 700, 700, 700, 650, 600, 650),
		qos(2, 1100, 1100, 1750, 1100, 1150, 1200, 1250, 1350, 1650, 1650, 1650, 1450, 1300),
		qos(3, 850, 500, 1100, 850, 1000, 950, 900, 800, 750, 650, 600, 750, 800),
		qos(4, 950, 900, 1150, 950, 1050, 1100, 1050, 1000, 950, 1150, 1150, 1000, 950),
		bestEffort(1500),
	}},
	{40, false, []Flow{
		qos(1, 450, 400, 650, 450, 450, 500, 600, 650, 650, 600, 500, 450, 550),
		qos(2, 1000, 950, 1700, 1000, 1000, 1150, 1200, 1200, 1600, 1600, 1400, 1250, 1100),
		qos(3, 650, 500, 950, 650, 850, 800, 750, 800, 750, 700, 600, 700, 650),
		qos(4, 900, 800, 1150, 900, 1000, 1000, 950, 950, 850, 1050, 1100, 1050, 1000),
		bestEffort(2000),
	}},
	{50, true, []Flow{
		qos(1, 350, 350, 650, 350, 450, 500, 600, 650, 600, 600, 450, 400, 550),
		qos(2, 950, 900, 1650, 950, 900, 1100, 1150, 1150, 1650, 1600, 1250, 1050, 1000),
		qos(3, 400, 400, 800, 400, 600, 650, 600, 800, 750, 650, 600, 600, 450),
		qos(4, 800, 700, 1050, 800, 900, 900, 850, 800, 700, 950, 1050, 1000, 950),
		bestEffort(2500),
	}},
}

// qos and bestEffort make a row from rates in kbit/s.
func qos(class int, reserved, low, high unit.Rate, waveform ...unit.Rate) Flow {
	for i := range waveform {
		waveform[i] *= unit.Kbit
	}
	name := "QoS" + string(rune('0'+class))
	return Flow{name, class, reserved * unit.Kbit, low * unit.Kbit, high * unit.Kbit, waveform}
}

func bestEffort(rate unit.Rate) Flow {
	f := qos(share.BestEffort, rate, rate, rate, rate, rate, rate, rate, rate, rate, rate, rate, rate, rate)
	f.Name = "BE"
	return f
}

// At returns the scenario with all rates multiplied, for links of LinkRate * factor.
func (s Scenario) At(factor unit.Rate) Scenario {
	flows := make([]Flow, len(s.Flows))
	for i, f := range s.Flows {
		f.Reserved, f.Min, f.Max = f.Reserved*factor, f.Min*factor, f.Max*factor
		f.Waveform = append([]unit.Rate(nil), f.Waveform...)
		for k := range f.Waveform {
			f.Waveform[k] *= factor
		}
		flows[i] = f
	}
	s.Flows = flows
	return s
}

// Controlled returns the rates that the flows offer, by interval and flow.
func (s Scenario) Controlled() [][]unit.Rate {
	out := make([][]unit.Rate, len(s.Flows[0].Waveform))
	for k := range out {
		for _, f := range s.Flows {
			out[k] = append(out[k], f.Waveform[k])
		}
	}
	return out
}

// Random returns rates drawn from the range of each flow, by interval and flow. The same seed
// gives the same rates, so all schemes can be compared on one draw.
func (s Scenario) Random(seed uint64) [][]unit.Rate {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([][]unit.Rate, RandomIntervals)
	for k := range out {
		for _, f := range s.Flows {
			out[k] = append(out[k], f.Min+unit.Rate(rng.Uint64N(uint64(f.Max-f.Min)+1)))
		}
	}
	return out
}

// Bottleneck is the index of the link that all flows of Network cross.
const Bottleneck = 2

// Network returns the network of figure 4.1 with the flows of the scenario, for links of
// LinkRate * factor: links 0 and 1 lead from the ingress switches s1 and s3 to s2, link 2 from s2
// to s5, and links 3 and 4 to the egress switches s4 and s6. QoS1 to QoS3 enter at s1, as the
// hosts h1 to h3; QoS4 and best effort enter at s3. The keys are the names.
func (s Scenario) Network(factor unit.Rate) share.ReservedNetwork {
	n := share.ReservedNetwork{Capacities: make([]unit.Rate, 5)}
	for l := range n.Capacities {
		n.Capacities[l] = LinkRate * factor
	}
	for i, f := range s.At(factor).Flows {
		links := []int{0, Bottleneck, 3}
		if i >= 3 {
			links = []int{1, Bottleneck, 4}
		}
		n.Flows = append(n.Flows, share.ReservedFlow{Key: f.Name, Links: links, Reserved: f.Reserved, Class: f.Class})
	}
	return n
}
