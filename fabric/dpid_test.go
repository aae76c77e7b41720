package fabric

import (
	"strings"
	"testing"
)

func TestParseDPID(t *testing.T) {
	for in, want := range map[string]DPID{
		"0000000000000001":        1,
		"00:00:00:00:00:00:00:01": 1,
		"ffffFFFFffffffff":        0xffffffffffffffff,
		"00:00:0a:bc:de:f0:12:34": 0xabcdef01234,
	} {
		if got, err := ParseDPID(in); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "1", "0x0000000000000001", "000000000000000g", "00000000000000001", "0:0:0:0:0:0:0:1",
		"000:0:00:00:00:00:00:01", "+000000000000001", "00-00-00-00-00-00-00-01"} {
		if got, err := ParseDPID(in); err == nil || !strings.Contains(err.Error(), "write 16 hexadecimal digits") {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	if _, err := ParseDPID("0000000000000000"); err == nil || !strings.Contains(err.Error(), "ovs-vsctl set bridge") {
		t.Errorf("0: %v", err)
	}
}

func FuzzParseDPID(f *testing.F) {
	f.Add("0000000000000001")
	f.Add("00:00:00:00:00:00:00:01")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDPID(s)
		if err != nil {
			return
		}
		if !strings.EqualFold(s, d.String()) && !strings.EqualFold(s, d.Colons()) {
			t.Errorf("%q is read as %v", s, d)
		}
		for _, out := range []string{d.String(), d.Colons()} {
			if again, err := ParseDPID(out); err != nil || again != d {
				t.Errorf("%v is printed as %s, which is read as %v %v", d, out, again, err)
			}
		}
	})
}

func FuzzParseMAC(f *testing.F) {
	f.Add("02:00:00:00:00:01")
	f.Add("0200.0000.0001")
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := ParseMAC(s); err == nil {
			if again, err := ParseMAC(m.String()); err != nil || again != m {
				t.Errorf("%q: %v is read as %v %v", s, m, again, err)
			}
		}
	})
}

func TestParseMACOfOtherSizes(t *testing.T) {
	for _, in := range []string{"02:00:00:00:00:00:00:01", "02:00:00:00:00", "localhost"} {
		if m, err := ParseMAC(in); err == nil || !strings.Contains(err.Error(), "write six pairs") {
			t.Errorf("%s: %v %v", in, m, err)
		}
	}
}

func TestPortIDPrints(t *testing.T) {
	id := LinkID{PortID{1, 3}, PortID{2, Local}}
	if got, want := id.String(), "0000000000000001/3 -> 0000000000000002/LOCAL"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
