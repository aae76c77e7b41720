package fabric

import "testing"

func TestParsePings(t *testing.T) {
	both := parsePings(`PING 10.128.0.2 (10.128.0.2) 56(84) bytes of data.
64 bytes from 10.128.0.2: icmp_seq=1 ttl=64 time=3.21 ms
64 bytes from 10.128.0.2: icmp_seq=2 ttl=64 time=0.105 ms

--- 10.128.0.2 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 101ms
rtt min/avg/max/mdev = 0.105/1.657/3.210/1.552 ms
`)
	if both != (pinged{3.21, 0.105, true, true}) {
		t.Errorf("%+v", both)
	}
	second := parsePings("64 bytes from fd00::2: icmp_seq=2 ttl=64 time=1020 ms\n")
	if second != (pinged{second: 1020, another: true}) {
		t.Errorf("%+v", second)
	}
	var f firstPings
	f.add("a", both)
	f.add("b", second)
	f.add("c", pinged{})
	if f.lost != 3 || len(f.over) != 1 || len(f.first) != 1 || len(f.failed) != 2 || f.over[0] != 3.21-0.105 {
		t.Errorf("%+v", f)
	}
}

func TestPairs(t *testing.T) {
	if all := pairs(10, false); len(all) != 90 {
		t.Errorf("%d pairs", len(all))
	}
	few := pairs(10, true)
	seen := map[int]bool{}
	for _, p := range few {
		if p[0] == p[1] || p[1] < 1 || p[1] > 10 {
			t.Errorf("pair %v", p)
		}
		seen[p[0]] = true
	}
	if len(few) != 10 || len(seen) != 10 {
		t.Errorf("%v", few)
	}
}

func TestParseLoss(t *testing.T) {
	if sent, received, ok := parseLoss("25 packets transmitted, 23 received, +1 duplicates, 8% packet loss, time 4900ms\n"); sent != 25 || received != 23 || !ok {
		t.Error(sent, received, ok)
	}
	if _, _, ok := parseLoss("ping: connect: Network is unreachable\n"); ok {
		t.Error("no summary is read")
	}
}
