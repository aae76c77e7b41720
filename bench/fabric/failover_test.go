package fabric

import "testing"

func TestParseCounts(t *testing.T) {
	got := parseCounts(`Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 s1-s2: 1058022    9433    0    0    0     0          0         0  2106044   18877    0    0    0     0       0          0
`)
	if len(got) != 2 || got["s1-s2"] != (frames{9433, 18877}) {
		t.Errorf("%+v", got)
	}
}
