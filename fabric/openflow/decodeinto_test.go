package openflow

import (
	"reflect"
	"testing"
)

// A reply that is decoded into the memory of an earlier one is the same as one that has its own, whatever the earlier one was.
func TestDecodeInto(t *testing.T) {
	meters := func(bands ...int) (m MultipartReply) {
		var b MeterStatsReply
		for i, n := range bands {
			one := MeterCounters{Meter: MeterID(i + 1), Bytes: uint64(100 * n)}
			for k := range n {
				one.Bands = append(one.Bands, Counter{uint64(i), uint64(k)})
			}
			b.Meters = append(b.Meters, one)
		}
		m.Body = &b
		return m
	}
	var into MeterStatsReply
	for _, bands := range [][]int{{1, 1, 1}, {}, {2, 1, 0, 3}, {1}, {0, 0}, {1, 2, 3, 4, 5}, {1, 1, 1}} {
		m := meters(bands...)
		text, err := Append(nil, 1, &m)
		if err != nil {
			t.Fatal(err)
		}
		_, got, _, err := DecodeInto(text, &into)
		if err != nil || got.(*MultipartReply).Body != &into {
			t.Fatalf("%v: %v, %v", bands, got, err)
		}
		want := m.Body.(*MeterStatsReply).Meters
		if len(into.Meters) != len(want) || len(want) > 0 && !reflect.DeepEqual(into.Meters, want) {
			t.Errorf("meters with %v bands are decoded as %+v", bands, into.Meters)
		}
	}
	m := meters(1, 1, 1)
	text, _ := Append(nil, 1, &m)
	if n := testing.AllocsPerRun(10, func() { _, _, _, _ = DecodeInto(text, &into) }); n > 2 {
		t.Errorf("a reply of three meters takes %v allocations", n)
	}
	flows, _ := Append(nil, 1, &MultipartReply{Body: &FlowStatsReply{}})
	if _, got, _, err := DecodeInto(flows, &into); err != nil || got.(*MultipartReply).Body == ReplyBody(&into) {
		t.Errorf("a reply of another kind: %v, %v", got, err)
	}
}
