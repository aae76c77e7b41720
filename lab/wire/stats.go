package wire

import (
	"time"

	"headgate.dev/headgate/lab/link"
)

// Stats has the counters of one direction since Start. Bytes are layer 2, of segments as on a wire. Of
// frames in flight only the arrival is counted.
type Stats struct {
	// Begun is the start time, in ns of CLOCK_MONOTONIC: with the link's seed and properties it
	// determines when each virtual packet arrives.
	Begun    int64         `json:"begun_ns"`
	Duration time.Duration `json:"duration_ns"`
	// Frames came from the sending device, with a super-packet counted once; Writes went to the
	// receiving one.
	Frames uint64 `json:"frames"`
	Writes uint64 `json:"writes"`
	// Segments and Bytes were delivered; Marked is the number of them in which the link set CE.
	Segments uint64 `json:"segments"`
	Bytes    uint64 `json:"bytes"`
	Marked   uint64 `json:"marked_segments"`
	// Overflowed, Early, Policed and Lost are segments that the link dropped: by a full queue, by RED or CoDel,
	// without tokens, and on the wire.
	Overflowed uint64 `json:"overflowed_segments"`
	Early      uint64 `json:"early_dropped_segments"`
	Policed    uint64 `json:"policed_segments"`
	Lost       uint64 `json:"lost_segments"`
	// Dropped are whole frames that found the ring full, Missed those that the sending device dropped
	// because they were not read in time, Failed the writes that the receiving device did not accept.
	// None is a property of the link: a run with any of them is not valid.
	Dropped uint64 `json:"dropped_frames"`
	Missed  uint64 `json:"missed_frames"`
	Failed  uint64 `json:"failed_writes"`
	// Counts of the virtual cross traffic.
	CrossBytes     uint64 `json:"cross_bytes"`
	CrossLostBytes uint64 `json:"cross_lost_bytes"`
	// Late counts the writes that were late by more than LateBound, and the stalls of the emulator
	// that delayed arrivals for longer. VeryLate counts those that were late by more than VeryLate
	// bounds. WorstLate is the maximum.
	Late      uint64        `json:"late"`
	VeryLate  uint64        `json:"very_late"`
	WorstLate time.Duration `json:"worst_late_ns"`
	LateBound time.Duration `json:"late_bound_ns"`
	// User and System are the thread's processor time. Their sum is exact, the split is the kernel's
	// estimate from ticks. Writing is the time within write(2), in which the kernel receives what is
	// written.
	User    time.Duration `json:"user_ns"`
	System  time.Duration `json:"system_ns"`
	Writing time.Duration `json:"writing_ns"`
	// Untraced is the number of results that did not fit into the log.
	Untraced uint64 `json:"untraced"`
}

// Drops returns the number of segments and frames that arrived and were not delivered, for any reason.
func (s Stats) Drops() uint64 {
	return s.Overflowed + s.Early + s.Policed + s.Lost + s.Dropped + s.Missed + s.Failed
}

// CPU returns the thread's processor time.
func (s Stats) CPU() time.Duration { return s.User + s.System }

// dropped counts a dropped segment or virtual packet.
func (s *Stats) dropped(r *link.Result) {
	if r.Cross {
		s.CrossLostBytes += uint64(r.Size)
		return
	}
	switch r.Fate {
	case link.Lost:
		s.Lost++
	case link.Overflowed:
		s.Overflowed++
	case link.Early:
		s.Early++
	case link.Policed:
		s.Policed++
	}
}

// late counts the lateness of a write or stall.
func (s *Stats) late(by int64) {
	if by > int64(s.LateBound) {
		s.Late++
	}
	if by > VeryLate*int64(s.LateBound) {
		s.VeryLate++
	}
	s.WorstLate = max(s.WorstLate, time.Duration(by))
}
