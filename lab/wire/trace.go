package wire

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"headgate.dev/headgate/lab/link"
)

// Record is one line of a release log: the outcome of one segment, or of one packet of cross traffic.
// Times are ns of CLOCK_MONOTONIC, and 0 for stages that it did not reach.
type Record struct {
	link.Result
	Written int64 // actual time of the write to the receiving device
}

// Trace is a release log.
type Trace struct {
	// Begun is the start of the link, in ns of CLOCK_MONOTONIC: its intervals count from then, and its
	// bucket was full.
	Begun   int64
	Records []Record
	// Missing is the number of records that did not fit into the log.
	Missing uint64
}

// traceBegun and the time are a log's first line, traceHeader its second; traceMissing begins a line
// about missing records.
const (
	traceBegun   = "# begun_ns: "
	traceHeader  = "number,bytes,dscp,ecn,arrived_ns,departed_ns,released_ns,written_ns,fate,marked,cross"
	traceMissing = "# missing: "
)

var fates = [...]string{
	link.Delivered: "delivered", link.Lost: "lost", link.Overflowed: "overflowed", link.Early: "early", link.Policed: "policed",
}

// Constants of the log, chosen by this project: 64 batches of 4,096 records are 18 MB, and 3 s of 1
// Gbit/s.
const (
	traceBatch   = 4096
	traceBatches = 64
)

// tracer passes records from the real-time thread to a goroutine that writes them. When that is too
// slow, records are counted and discarded.
type tracer struct {
	batch   []Record
	missing uint64 // since batch is full
	free    chan []Record
	full    chan traced
	done    chan error
}

// traced is a batch, and the number of records that are missing after it.
type traced struct {
	records []Record
	missing uint64
}

func newTracer(w io.Writer, begun int64) *tracer {
	t := &tracer{free: make(chan []Record, traceBatches), full: make(chan traced, traceBatches), done: make(chan error, 1)}
	for range traceBatches - 1 {
		t.free <- make([]Record, 0, traceBatch)
	}
	t.batch = make([]Record, 0, traceBatch)
	go func() { t.done <- t.write(w, begun) }()
	return t
}

// add never waits. It reports whether the record was accepted.
func (t *tracer) add(r *link.Result, written int64) bool {
	if len(t.batch) == cap(t.batch) && !t.next() {
		t.missing++
		return false
	}
	t.batch = append(t.batch, Record{*r, written})
	return true
}

// next sends the batch if there is another free one.
func (t *tracer) next() bool {
	select {
	case empty := <-t.free:
		// This does not block: there are not more batches than places.
		t.full <- traced{t.batch, t.missing}
		t.batch, t.missing = empty[:0], 0
		return true
	default:
		return false
	}
}

// close writes the rest and returns the first error.
func (t *tracer) close() error {
	t.full <- traced{t.batch, t.missing}
	close(t.full)
	return <-t.done
}

func (t *tracer) write(w io.Writer, begun int64) (err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, "%s%d\n%s\n", traceBegun, begun, traceHeader)
	var line []byte
	for batch := range t.full {
		for i := range batch.records {
			line = batch.records[i].append(line[:0])
			b.Write(line)
		}
		if batch.missing > 0 {
			fmt.Fprintf(b, "%s%d\n", traceMissing, batch.missing)
		}
		t.free <- batch.records
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("cannot write the release log: %w", err)
	}
	return nil
}

func (r *Record) append(b []byte) []byte {
	b = strconv.AppendUint(b, r.Number, 10)
	for _, v := range [...]int64{int64(r.Size), int64(r.DSCP), int64(r.ECN), r.Arrived, r.Departed, r.Released, r.Written} {
		b = strconv.AppendInt(append(b, ','), v, 10)
	}
	b = append(append(b, ','), fates[r.Fate]...)
	b = strconv.AppendBool(append(b, ','), r.Marked)
	b = strconv.AppendBool(append(b, ','), r.Cross)
	return append(b, '\n')
}

// ReadTrace reads a release log.
func ReadTrace(r io.Reader) (t Trace, err error) {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		text := s.Text()
		begun, isBegun := strings.CutPrefix(text, traceBegun)
		missing, isMissing := strings.CutPrefix(text, traceMissing)
		var count uint64
		switch {
		case n == 1 && isBegun:
			t.Begun, err = strconv.ParseInt(begun, 10, 64)
		case n == 1:
			err = fmt.Errorf("not a release log: the first line must begin with %q", traceBegun)
		case n == 2 && text != traceHeader:
			err = fmt.Errorf("not a header of a release log: the second line must be %q", traceHeader)
		case n == 2:
		case isMissing:
			count, err = strconv.ParseUint(missing, 10, 64)
			t.Missing += count
		default:
			var record Record
			record, err = parseRecord(text)
			t.Records = append(t.Records, record)
		}
		if err != nil {
			return Trace{}, fmt.Errorf("line %d of the release log: %w", n, err)
		}
	}
	return t, s.Err()
}

func parseRecord(text string) (r Record, err error) {
	fields := strings.Split(text, ",")
	if len(fields) != strings.Count(traceHeader, ",")+1 {
		return r, fmt.Errorf("%d fields, want those of %q", len(fields), traceHeader)
	}
	var size, dscp, ecn int64
	for i, to := range []*int64{&size, &dscp, &ecn, &r.Arrived, &r.Departed, &r.Released, &r.Written} {
		if *to, err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return r, err
		}
	}
	r.Size, r.DSCP, r.ECN = int(size), uint8(dscp), uint8(ecn)
	if r.Number, err = strconv.ParseUint(fields[0], 10, 64); err != nil {
		return r, err
	}
	fate := -1
	for i, name := range fates {
		if name == fields[8] {
			fate = i
		}
	}
	if fate < 0 {
		return r, fmt.Errorf("%q is not a fate: use one of %s", fields[8], strings.Join(fates[:], ", "))
	}
	r.Fate = link.Fate(fate)
	if r.Marked, err = strconv.ParseBool(fields[9]); err != nil {
		return r, err
	}
	r.Cross, err = strconv.ParseBool(fields[10])
	return r, err
}
