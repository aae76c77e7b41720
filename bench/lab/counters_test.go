package lab

import "testing"

func TestCounter(t *testing.T) {
	const text = "Ip: Forwarding DefaultTTL\nIp: 1 64\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 5 0 0 7 3\n"
	if n, err := counter(text, "Udp", "RcvbufErrors"); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range [][2]string{{"Udp", "Missing"}, {"Tcp", "RcvbufErrors"}} {
		if _, err := counter(text, bad[0], bad[1]); err == nil {
			t.Errorf("%v was found", bad)
		}
	}
}
