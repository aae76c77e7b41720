package probe

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sampleForLog() Sample {
	return Sample{
		Train: Train{Purpose: "test/train", Parts: []Part{{Count: 2, Size: 1500}, {Count: 1, Size: 80, Rate: 1e6, Pause: time.Millisecond}}},
		Sent:  []int64{1_000_000_000_000, 1_000_000_000_300, 1_000_001_000_000},
		Arrived: []Arrival{
			{Number: 1, At: 1_700_000_000_000_000_500}, {Number: 0, At: 1_700_000_000_000_000_400}, {Number: 0, At: 1_700_000_000_000_000_900},
		},
		Overflow: 3, StealTime: StealTime{Sender: 10_000_000}, Flaws: []string{"sender stalled for 2ms"},
	}
}

// A log with reordered, lost and duplicated packets and with a joint sample is read back
// unchanged.
func TestLogRoundTrip(t *testing.T) {
	s := sampleForLog()
	j := JointSample{
		Joint: Joint{Purpose: "test/race", Trains: []Train{s.Train, Uniform("", 1, 500, 0)}, Start: []time.Duration{0, time.Millisecond}},
		Sent:  [][]int64{s.Sent, {77}}, Arrived: []JointArrival{{1, 0, 9}, {0, 2, 11}}, Reordered: true,
	}
	var b bytes.Buffer
	l, err := NewLog(&b, LogHeader{Host: "h", Command: "path", MTU: 1500, RTT: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{l.Add(Out, &s), l.Add(In, &s), l.AddJoint([]string{"a", "b"}, &j), l.Add(In, &s)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A killed program leaves an incomplete last line.
	got, err := ReadLog(strings.NewReader(b.String() + `{"purpose":"test`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Head.Host != "h" || got.Head.RTT != time.Millisecond || len(got.Samples[Out]) != 1 || len(got.Samples[In]) != 2 || len(got.Joint) != 1 {
		t.Fatalf("read: %+v", got)
	}
	if !reflect.DeepEqual(got.Samples[In][1], s) {
		t.Errorf("sample reads back as %+v, want %+v", got.Samples[In][1], s)
	}
	if !reflect.DeepEqual(got.Joint[0].Sample, j) || got.Joint[0].Hosts[1] != "b" {
		t.Errorf("joint sample reads back as %+v, want %+v", got.Joint[0].Sample, j)
	}
}

// Errors name the line.
func TestLogErrors(t *testing.T) {
	head := `{"headgate_probe_log":1}` + "\n"
	const sent, none = `"sent":[5,1]`, `"packet":[],"at":[]`
	parts := `"parts":[{"count":2,"size":100}]`
	for name, c := range map[string][2]string{
		"empty":                      {"", "incomplete"},
		"another file":               {"hello\n", "not a headgate probe log"},
		"another version":            {`{"headgate_probe_log":99}` + "\n", "version 99"},
		"invalid JSON":               {head + "{]\n", "line 2"},
		"direction":                  {head + `{"direction":"up",` + parts + "," + sent + "," + none + "}\n", `line 2: direction "up"`},
		"no parts":                   {head + `{"direction":"in",` + sent + "," + none + "}\n", "at least one part"},
		"too few send times":         {head + `{"direction":"in",` + parts + `,"sent":[1],` + none + "}\n", "line 2: 1 send times for 2 packets"},
		"lists differ":               {head + `{"direction":"in",` + parts + "," + sent + `,"packet":[0],"at":[]}` + "\n", "1 packet numbers and 0 arrival times"},
		"unknown packet":             {head + `{"direction":"in",` + parts + "," + sent + `,"packet":[7],"at":[1]}` + "\n", "packet 7 is invalid"},
		"too many packets":           {head + `{"direction":"in","parts":[{"count":99999999999,"size":1}],` + sent + "," + none + "}\n", "part has 99999999999 packets"},
		"joint sample without hosts": {head + `{"trains":[{` + parts + `}],"sent_by":[[1,2]],"from":[],"packet":[],"at":[]}` + "\n", "0 hosts"},
		"arrival of no train":        {head + `{"trains":[{` + parts + `}],"hosts":["a"],"sent_by":[[1,2]],"from":[1],"packet":[0],"at":[0]}` + "\n", "no train has this packet"},
	} {
		if _, err := ReadLog(strings.NewReader(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", name, err, c[1])
		}
	}
}

func FuzzReadLog(f *testing.F) {
	s := sampleForLog()
	var b bytes.Buffer
	l, err := NewLog(&b, LogHeader{})
	if err != nil {
		f.Fatal(err)
	}
	if err := l.Add(Out, &s); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"headgate_probe_log":1}` + "\n" + `{"trains":[{"parts":[{"count":1,"size":9}]}],"hosts":["a"],"sent_by":[[1]],"from":[0],"packet":[0],"at":[0]}` + "\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		r, err := ReadLog(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, all := range r.Samples {
			for i := range all {
				all[i].Split()
				all[i].Lost()
			}
		}
	})
}
