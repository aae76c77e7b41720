package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
)

func result(n uint64) *link.Result {
	return &link.Result{
		Packet: link.Packet{Size: int(n%1500) + 14, DSCP: uint8(n % 64), ECN: uint8(n % 4)}, Number: n, Arrived: int64(n) * 10, Departed: int64(n)*10 + 3, Released: int64(n)*10 + 5,
		Fate: link.Fate(n % 5), Marked: n%7 == 0, Cross: n%3 == 0,
	}
}

// A log is read as it was written.
func TestTraceIsRead(t *testing.T) {
	var log bytes.Buffer
	tr := newTracer(&log, 77)
	var want []Record
	for n := range uint64(3*traceBatch + 5) {
		r := result(n)
		if !tr.add(r, int64(n)*10+6) {
			t.Fatalf("record %d was not accepted", n)
		}
		want = append(want, Record{*r, int64(n)*10 + 6})
	}
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTrace(&log)
	if err != nil || got.Begun != 77 || got.Missing != 0 || !reflect.DeepEqual(got.Records, want) {
		t.Errorf("%d of %d records, %d missing, begun at %d, %v", len(got.Records), len(want), got.Missing, got.Begun, err)
	}
}

// A log whose batches are not written holds a limited number of records, and reports where others are
// missing.
func TestTraceNeverWaits(t *testing.T) {
	in, out := io.Pipe()
	tr := newTracer(out, 0)
	const n = (traceBatches + 10) * traceBatch
	kept := 0
	for i := range uint64(n) {
		if tr.add(result(i), 0) {
			kept++
		}
	}
	if kept > traceBatches*traceBatch || kept < (traceBatches-1)*traceBatch {
		t.Errorf("%d of %d records were kept", kept, n)
	}
	var log bytes.Buffer
	done := make(chan error)
	go func() { _, err := io.Copy(&log, in); done <- err }()
	for len(tr.free) == 0 {
		time.Sleep(time.Millisecond)
	}
	if !tr.add(result(n), 0) {
		t.Error("a record was not accepted although batches are free")
	}
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text := log.String()
	got, err := ReadTrace(&log)
	if err != nil || len(got.Records) != kept+1 || got.Missing != uint64(n-kept) {
		t.Fatalf("%d of %d records, %d of %d missing, %v", len(got.Records), kept+1, got.Missing, n-kept, err)
	}
	_, after, _ := strings.Cut(text, fmt.Sprintf("\n%s%d\n", traceMissing, n-kept))
	if want := string((&Record{Result: *result(n)}).append(nil)); after != want {
		t.Errorf("after the missing records %d bytes follow, want %q", len(after), want)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestTraceReportsErrors(t *testing.T) {
	tr := newTracer(failing{}, 0)
	tr.add(result(1), 0)
	if err := tr.close(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("close returns %v", err)
	}
	const line = "1,1514,46,2,1,2,3,4,delivered,false,true\n"
	head := traceBegun + "5\n" + traceHeader + "\n"
	with := func(old, new string) string { return head + strings.Replace(line, old, new, 1) }
	for text, want := range map[string]string{
		"1,2\n":                      "line 1 of the release log: not a release log",
		traceBegun + "5\n" + line:    "line 2 of the release log: not a header",
		head + line + "1,2":          "line 4 of the release log: 2 fields",
		with("delivered", "eaten"):   `"eaten" is not a fate`,
		with("1514", "big"):          "big",
		with("true", "maybe"):        "maybe",
		head + traceMissing + "many": "many",
	} {
		if _, err := ReadTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(traceBegun + "5\n" + traceHeader + "\n1,1514,46,2,1,2,3,4,delivered,false,true\n" + traceMissing + "3\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range trace.Records {
			back, err := parseRecord(strings.TrimSuffix(string(r.append(nil)), "\n"))
			if err != nil || back != r {
				t.Fatalf("%+v comes back as %+v, %v", r, back, err)
			}
		}
	})
}
