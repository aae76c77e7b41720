package traffic

import "testing"

// The counts of many connections do not decrease when the counts of one are missing: a negative
// difference would be an interval of 10^19 retransmissions.
func TestAppCountsDoNotFall(t *testing.T) {
	f := &flow{app: &transferrer{}, last: snapshot{tcp: connState{retransmits: 7, deliveredCE: 3}}}
	f.closed.retransmits = 5
	if iv := f.sample(1e9); iv.Retransmits != 0 || iv.DeliveredCE != 0 {
		t.Errorf("%d retransmissions, %d marks", iv.Retransmits, iv.DeliveredCE)
	}
	f.closed.retransmits, f.closed.deliveredCE = 9, 4
	if iv := f.sample(2e9); iv.Retransmits != 2 || iv.DeliveredCE != 1 {
		t.Errorf("%d retransmissions and %d marks more, want 2 and 1", iv.Retransmits, iv.DeliveredCE)
	}
}
