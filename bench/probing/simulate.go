package probing

import (
	"context"
	"runtime"
	"sync"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
)

// next returns a method's next train from the samples so far.
type next = func([]probe.Sample) (probe.Train, bool)

// rounds limits a method that does not end.
const rounds = 1000

// simulate runs a method over a simulated path, and returns its result with the bytes and the virtual
// seconds that it took.
func simulate(p sim.Path, seed uint64, step next) (samples []probe.Sample, bytes, seconds float64) {
	samples = sendAll(sim.New(p, seed), step)
	b, s := spent(samples)
	return samples, b, s
}

// sendAll sends the trains of a method over a network, and returns their samples.
func sendAll(n *sim.Network, step next) (samples []probe.Sample) {
	for range rounds {
		t, ok := step(samples)
		if !ok {
			break
		}
		samples = append(samples, n.Send(t))
	}
	return samples
}

// spent returns the bytes of samples, and the time from the first send to the last arrival; a round
// trip follows each train.
func spent(samples []probe.Sample) (bytes, seconds float64) {
	for i := range samples {
		s := &samples[i]
		bytes += float64(s.Bytes())
		if len(s.Sent) == 0 {
			continue
		}
		took := float64(s.Sent[len(s.Sent)-1] - s.Sent[0])
		if n := len(s.Arrived); n > 0 {
			took = max(took, float64(s.Arrived[n-1].At-s.Arrived[0].At))
		}
		seconds += took/1e9 + s.Parts[0].Pause.Seconds() + roundTrip
	}
	return bytes, seconds
}

// roundTrip is how long a simulated session waits for the answer to each train, in s.
const roundTrip = 0.01

// onAll does n things on all processors.
func onAll(ctx context.Context, n int, do func(i int)) {
	var all sync.WaitGroup
	places := make(chan int)
	for range runtime.NumCPU() {
		all.Go(func() {
			for i := range places {
				do(i)
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		places <- i
	}
	close(places)
	all.Wait()
}
