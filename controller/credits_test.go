package controller

import (
	"encoding/json"
	"testing"
	"time"

	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
)

// TestCreditsOverDays joins what scheduled measurements found in a bucket: that of one is a lower bound, and the size when another found the same.
func TestCreditsOverDays(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	answer := func(bytes string) json.RawMessage {
		return json.RawMessage(`{"credits": {"burst": {"value": 5e9}, "baseline": {"value": 7.5e8, "low": 7.49e8, "high": 7.51e8}, "bucket": {"value": ` + bytes + `, "at_least": true}, "found": [{"baseline_bps": 7.5e8, "burst_bps": 5e9, "bytes": ` + bytes + `}]}}`)
	}
	var known json.RawMessage
	for i, bytes := range []string{"2.1e7", "3.0e7", "2.99e7"} {
		known = withCredits(answer(bytes), known, day.Add(time.Duration(i)*6*time.Hour))
	}
	var a path.Answer
	if err := json.Unmarshal(known, &a); err != nil || a.Credits == nil || len(a.Credits.Found) != 3 {
		t.Fatalf("%v: %s", err, known)
	}
	if b := a.Credits.Bucket; b.AtLeast || b.Low > 3.0e7 || b.High < 3.0e7 || a.TokenRate == nil || a.TokenRate.Bucket != b {
		t.Errorf("the bucket is %+v: %s", b, known)
	}
	if !a.Credits.Found[0].At.Equal(day) || !a.Credits.Found[2].At.Equal(day.Add(12*time.Hour)) || !a.Credits.Found[1].At.Equal(day.Add(6*time.Hour)) {
		t.Errorf("found %+v", a.Credits.Found)
	}
	for _, other := range []string{`{"capacity": {"value": 1e9}}`, `7`} {
		if got := withCredits(json.RawMessage(other), known, day); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}

// TestCreditsOfLink holds reservations to the baseline of a limiter, although shorter trains passed faster later.
func TestCreditsOfLink(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	result := func(a path.Answer, hour int) store.ProbeResult {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return store.ProbeResult{Answer: text, At: at.Add(time.Duration(hour) * time.Hour)}
	}
	var credits, passed path.Answer
	if err := json.Unmarshal([]byte(`{"capacity": {"value": 1e9, "low": 1e9, "high": 1e9}, "credits": {"baseline": {"value": 1e8, "low": 1e8, "high": 1e8}, "burst": {"value": 1e9}, "bucket": {"value": 3e7, "at_least": true}}, "token_rate": {"rate": {"value": 1e8, "low": 1e8, "high": 1e8}, "bucket": {"value": 3e7, "at_least": true}}}`), &credits); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"capacity": {"value": 1e9, "low": 1e9, "high": 1e9}, "token_rate": {"rate": {"value": 9.5e8, "low": 9.5e8, "at_least": true}, "bucket": {"cannot_tell": "no limit"}}}`), &passed); err != nil {
		t.Fatal(err)
	}
	results := map[schedule.Task]store.ProbeResult{
		{From: "a", To: "b", Measure: "credits"}: result(credits, 0),
		{From: "a", To: "b", Measure: "path"}:    result(passed, 1),
	}
	if _, m, bounded, ok := newest(results, "a", "b"); !ok || bounded || !m.Limited || m.Rate != 1e8 {
		t.Errorf("%+v, bounded %v, ok %v", m, bounded, ok)
	}
	delete(results, schedule.Task{From: "a", To: "b", Measure: "credits"})
	if _, m, bounded, ok := newest(results, "a", "b"); !ok || m.Rate < 9e8 {
		t.Errorf("without credits: %+v, bounded %v, ok %v", m, bounded, ok)
	}
}
