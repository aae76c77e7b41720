package unit

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for in, want := range map[string]Rate{
		"100Mbit": 100 * Mbit, "100mbit": 100 * Mbit, "1.5Gbit": 1500 * Mbit, "800kbit": 800_000,
		"8bit": 8, "0.8 Mbit": 800_000, "10Tbit": MaxRate,
	} {
		if got, err := ParseRate(in); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, remedy := range map[string]string{
		"100": "no unit", "": "a number and a unit", "fast": "a number and a unit", "10MBps": "80Mbit", "1Gbit/s": ": 1Gbit",
		"0.5bit": "more decimals", "11Tbit": "the maximum", "-1Mbit": "not a decimal", "1e3Mbit": "not a decimal", "1.2.3Mbit": "not a decimal",
	} {
		if got, err := ParseRate(in); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("ParseRate(%q) = %d, %v; want an error with %q", in, got, err, remedy)
		}
	}
}

// The error for a rate in bytes names the factor 8 and the correct notation.
func TestRateInBytes(t *testing.T) {
	for in, remedy := range map[string]string{
		"12MB/s": "a byte has 8 bits, so write 96Mbit", "12MBps": "write 96Mbit", "12MB": "write 96Mbit", "12 MB/s": "write 96Mbit",
		"500kB/s": "write 4Mbit", "500KB/s": "write 4Mbit", "1.5GB/s": "write 12Gbit", "1B/s": "write 8bit", "1MiB/s": "write 8388.608kbit", "64KiB": "write 524.288kbit",
		"2 megabytes/s": "write 16Mbit", "2Mbyte/s": "write 16Mbit", "2MByte per second": "write 16Mbit", "3TB/s": "write 24Tbit",
		"12Mb/s": "write 12Mbit for bits per second, or 96Mbit for bytes per second", "12mbps": "96Mbit for bytes",
		"1Gbit/s": "without \"per second\": 1Gbit", "12Mbit/sec": "12Mbit", "1Mibit/s": "1048.576kbit", "fast/s": "for example 100Mbit", "12Mb": "96Mbit for bytes",
		"0.1B/s": "write 100Mbit",
	} {
		if got, err := ParseRate(in); err == nil || !strings.Contains(err.Error(), remedy) || !strings.Contains(err.Error(), in) {
			t.Errorf("ParseRate(%q) = %d, %v; want an error with %q", in, got, err, remedy)
		}
	}
}

func TestPrintsExactly(t *testing.T) {
	for want, v := range map[string]any{
		"1.5Gbit": Rate(1500 * Mbit), "950Mbit": Rate(950 * Mbit), "1234.567kbit": Rate(1234567), "0bit": Rate(0),
		"64KiB": Bytes(65536), "1.5kB": Bytes(1500), "1.503kB": Bytes(1503), "7B": Bytes(7), "12.5%": Share(125000), "100%": Whole, "0.0001%": Share(1),
	} {
		if got := v.(interface{ String() string }).String(); got != want {
			t.Errorf("%#v prints %q, want %q", v, got, want)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Uint64Range(0, uint64(MaxRate)).Draw(t, "rate"))
		if got, err := ParseRate(r.String()); err != nil || got != r {
			t.Fatalf("rate %d printed %q, read back %d, %v", r, r, got, err)
		}
		b := Bytes(rapid.Uint64Range(0, 1<<50).Draw(t, "bytes"))
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("size %d printed %q, read back %d, %v", b, b, got, err)
		}
		s := Share(rapid.Uint32Range(0, uint32(Whole)).Draw(t, "share"))
		if got, err := ParseShare(s.String()); err != nil || got != s {
			t.Fatalf("share %d printed %q, read back %d, %v", s, s, got, err)
		}
	})
}

func TestShareOf(t *testing.T) {
	if got := Share(400000).Of(Gbit); got != 400*Mbit {
		t.Errorf("40%% of 1Gbit = %v", got)
	}
	if got := Whole.Of(MaxRate); got != MaxRate {
		t.Errorf("100%% of %v = %v", MaxRate, got)
	}
	if got := Share(333333).Of(10); got != 3 {
		t.Errorf("33.3333%% of 10bit = %d, want 3 (rounded down)", got)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"100Mbit", "1.5Gbit", "", "bit", "9999999999999999999999Tbit", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil {
			if back, err := ParseRate(r.String()); err != nil || back != r {
				t.Fatalf("%q read as %d, printed %q, read back %d, %v", s, r, r, back, err)
			}
		}
	})
}

// A round number in one kind of suffix is not printed as a fraction in the other.
func TestShorterSuffix(t *testing.T) {
	for b, want := range map[Bytes]string{200_000_000: "200MB", 65536: "64KiB", 10_000_000: "10MB", 1 << 30: "1GiB", 1234567: "1234.567kB"} {
		if got := b.String(); got != want {
			t.Errorf("%d is printed as %s, want %s", uint64(b), got, want)
		}
	}
}
