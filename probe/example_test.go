package probe_test

import (
	"bytes"
	"fmt"

	"headgate.dev/headgate/probe"
)

// sample returns a train of five packets that passed a link of 100 Mbit/s, where the fourth was lost.
// A frame has 1,500 bytes: 1,486 of IP and the Ethernet header.
func sample() probe.Sample {
	s := probe.Sample{Train: probe.Uniform("example/train", 5, 1486, 0), Sent: make([]int64, 5)}
	for i, number := range []int{0, 1, 2, 4} {
		s.Arrived = append(s.Arrived, probe.Arrival{Number: number, At: int64(i) * 120_000})
	}
	return s
}

func ExampleSample() {
	s := sample()
	fmt.Println("sent", s.Bytes(), "lost", s.Lost())
	fmt.Printf("arrived at %.0f Mbit/s\n", s.ArrivalRate()/1e6)
	fmt.Println("dispersions in ns", s.Dispersions())
	// Output:
	// sent 7.5kB lost 1
	// arrived at 100 Mbit/s
	// dispersions in ns [120000 120000]
}

// Samples are written to a log, from which estimates can be repeated.
func ExampleLog() {
	var file bytes.Buffer
	log, err := probe.NewLog(&file, probe.LogHeader{Host: "server.example.org", Command: "path"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := sample()
	if err := log.Add(probe.Out, &s); err != nil {
		fmt.Println(err)
		return
	}
	contents, err := probe.ReadLog(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	back := contents.Samples[probe.Out]
	fmt.Println(contents.Head.Host, len(back), back[0].Purpose, back[0].Lost())
	// Output: server.example.org 1 example/train 1
}

func ExampleEstimate_Format() {
	for _, e := range []probe.Estimate{
		{Value: 95.5e6, Low: 95.4e6, High: 95.6e6},
		{Value: 950e6, AtLeast: true},
		probe.NoEstimate("the train found no limit"),
	} {
		fmt.Println(e.Format(probe.FormatRate))
	}
	// Output:
	// 95.50Mbit (95.40Mbit to 95.60Mbit)
	// at least 950.0Mbit
	// cannot estimate: the train found no limit
}

func ExampleParseAddress() {
	for _, text := range []string{"Server.Example.org", "[2001:DB8::7]:5000"} {
		a, err := probe.ParseAddress(text)
		fmt.Println(a.Host, a.Port, err)
	}
	// Output:
	// server.example.org 4950 <nil>
	// 2001:db8::7 5000 <nil>
}
