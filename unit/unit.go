package unit

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Rate is a bandwidth in bits per second, layer 2 unless stated otherwise.
type Rate uint64

// SI prefixes of a Rate.
const (
	BitPerSecond Rate = 1
	Kbit              = 1000 * BitPerSecond
	Mbit              = 1000 * Kbit
	Gbit              = 1000 * Mbit
	Tbit              = 1000 * Gbit
)

// MaxRate is the largest accepted rate: 10 Tbit/s. Above it, byte counts per nanosecond do not fit
// the fixed-point arithmetic of the kernel's schedulers (net/sched/sch_generic.c,
// psched_ratecfg_precompute).
const MaxRate = 10 * Tbit

type suffix struct {
	name  string
	scale uint64
}

// Longest first, so that "kbit" is not parsed as "bit".
var (
	rateSuffixes = []suffix{
		{"Tbit", uint64(Tbit)}, {"Gbit", uint64(Gbit)}, {"Mbit", uint64(Mbit)}, {"kbit", uint64(Kbit)}, {"bit", 1},
	}
	byteSuffixes = []suffix{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
	}
)

// ParseRate parses "100Mbit", "1.5Gbit" or "800kbit"; the suffix is case-insensitive, as in tc. A
// number without a unit, a rate in bytes ("10MBps") and a rate that is not a whole number of bits
// per second are errors that show the correct notation.
func ParseRate(s string) (Rate, error) {
	if err := byteOrPerSecondError(s); err != nil {
		return 0, err
	}
	v, err := parse(s, rateSuffixes, "rate", "100Mbit")
	if err != nil {
		return 0, err
	}
	if Rate(v) > MaxRate {
		return 0, fmt.Errorf("%q is not a rate: it exceeds the maximum of %v", s, MaxRate)
	}
	return Rate(v), nil
}

// perSecond are the notations of "per second", longest first.
var perSecond = []string{"per second", "/second", "/sec", "ps", "/s"}

// byteOrPerSecondError returns an error with the correct notation for a rate in bytes or "per second", and
// nil for any other text.
func byteOrPerSecondError(s string) error {
	t, per := strings.TrimSpace(s), false
	for _, suffix := range perSecond {
		if n := len(t) - len(suffix); n > 0 && strings.EqualFold(t[n:], suffix) {
			t, per = strings.TrimSpace(t[:n]), true
			break
		}
	}
	i := len(t) - len(strings.TrimLeft(t, "0123456789. "))
	digits, name := strings.TrimSpace(t[:i]), t[i:]
	bits, bytes, both := parseUnit(name)
	in := func(scale uint64) string {
		if v, err := decimal(digits, scale); err == nil && scale > 0 {
			return Rate(v).String()
		}
		return "100Mbit"
	}
	switch {
	case digits == "" || bits == 0 && bytes == 0:
		if per {
			return fmt.Errorf("%q is not a rate: write bits per second without \"per second\", for example 100Mbit", s)
		}
		return nil
	case both: // "mbps" means megabytes in tc, and megabits nearly everywhere else
		return fmt.Errorf("%q is not a rate: write %s for bits per second, or %s for bytes per second (a byte has 8 bits)", s, in(bits), in(bytes*8))
	case bytes > 0:
		return fmt.Errorf("%q is in bytes, and rates are in bits per second: a byte has 8 bits, so write %s", s, in(bytes*8))
	case per:
		return fmt.Errorf("%q is not a rate: write bits per second without \"per second\": %s", s, in(bits))
	}
	return nil
}

// parseUnit returns the number of bits or bytes that a unit stands for, 0 if it is unknown:
// "MB", "mib", "Mbit", "megabytes". both is true for a lower-case "b" alone, which may mean either.
func parseUnit(name string) (bits, bytes uint64, both bool) {
	low := strings.ToLower(name)
	stem := ""
	for _, unit := range []string{"bytes", "byte", "octets", "octet", "bits", "bit", "b"} {
		if rest, ok := strings.CutSuffix(low, unit); ok {
			stem, low = unit, rest
			break
		}
	}
	scale, ok := map[string]uint64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12,
		"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, "kibi": 1 << 10, "mebi": 1 << 20, "gibi": 1 << 30, "tebi": 1 << 40,
	}[low]
	switch {
	case !ok || stem == "":
		return 0, 0, false
	case stem == "bit" || stem == "bits":
		return scale, 0, false
	case stem == "b" && strings.HasSuffix(name, "b"):
		return scale, scale, true
	}
	return 0, scale, false
}

// String prints the shortest exact form: 1500000000 is "1.5Gbit".
func (r Rate) String() string { return format(uint64(r), rateSuffixes) }

// BytesPerSecond returns the rate in bytes per second, rounded down.
func (r Rate) BytesPerSecond() uint64 { return uint64(r) / 8 }

// MarshalText prints the exact form, for YAML and JSON.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses as ParseRate does.
func (r *Rate) UnmarshalText(b []byte) (err error) { *r, err = ParseRate(string(b)); return err }

// Bytes is a size in bytes.
type Bytes uint64

// ParseBytes parses "64KiB", "1500B" or "1MB".
func ParseBytes(s string) (Bytes, error) {
	v, err := parse(s, byteSuffixes, "size", "64KiB")
	return Bytes(v), err
}

// String prints the shortest exact form, binary before decimal: 65536 is "64KiB".
func (b Bytes) String() string { return format(uint64(b), byteSuffixes) }

// MarshalText prints the exact form, for YAML and JSON.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText parses as ParseBytes does.
func (b *Bytes) UnmarshalText(t []byte) (err error) { *b, err = ParseBytes(string(t)); return err }

// Share is a part of a whole, in millionths: 40% is 400000.
type Share uint32

// Whole is 100%.
const Whole Share = 1_000_000

// ParseShare parses "40%" or "12.5%", up to 100% and four decimals.
func ParseShare(s string) (Share, error) {
	digits, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, fmt.Errorf("%q is not a percentage: write it with a %% sign, for example 40%%", s)
	}
	v, err := decimal(digits, uint64(Whole)/100)
	if err != nil {
		return 0, fmt.Errorf("%q is not a percentage: %w; write for example 40%%", s, err)
	}
	if v > uint64(Whole) {
		return 0, fmt.Errorf("%q is not a percentage of a limit: it exceeds 100%%", s)
	}
	return Share(v), nil
}

// Of returns the share (percentage) of r, rounded down.
func (s Share) Of(r Rate) Rate {
	hi := uint64(r) / uint64(Whole)
	lo := uint64(r) % uint64(Whole)
	return Rate(hi*uint64(s) + lo*uint64(s)/uint64(Whole))
}

// String prints the exact percentage: 125000 is "12.5%".
func (s Share) String() string { return formatScaled(uint64(s), uint64(Whole)/100) + "%" }

// MarshalText prints the exact form, for YAML and JSON.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses as ParseShare does.
func (s *Share) UnmarshalText(b []byte) (err error) { *s, err = ParseShare(string(b)); return err }

func parse(s string, suffixes []suffix, kind, example string) (uint64, error) {
	t := strings.TrimSpace(s)
	for _, suf := range suffixes {
		if len(t) < len(suf.name) || !strings.EqualFold(t[len(t)-len(suf.name):], suf.name) {
			continue
		}
		v, err := decimal(strings.TrimSpace(t[:len(t)-len(suf.name)]), suf.scale)
		if err != nil {
			return 0, fmt.Errorf("%q is not a %s: %w; write for example %s", s, kind, err, example)
		}
		return v, nil
	}
	if _, err := decimal(t, 1); err == nil {
		return 0, fmt.Errorf("%q is not a %s: it has no unit; write for example %s", s, kind, example)
	}
	return 0, fmt.Errorf("%q is not a %s: write a number and a unit, for example %s", s, kind, example)
}

// decimal parses an unsigned decimal number and scales it, exactly: a result with a fraction is an
// error and is not rounded.
func decimal(digits string, scale uint64) (uint64, error) {
	if digits == "" || len(digits) > 30 || strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a decimal number", digits)
	}
	r, ok := new(big.Rat).SetString(digits)
	if !ok {
		return 0, fmt.Errorf("%q is not a decimal number", digits)
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).SetUint64(scale)))
	if !r.IsInt() {
		return 0, fmt.Errorf("it has more decimals than the unit can hold")
	}
	if !r.Num().IsUint64() || r.Num().Uint64() > math.MaxInt64 {
		return 0, fmt.Errorf("it is too large")
	}
	return r.Num().Uint64(), nil
}

// format prints v with the largest suffix that needs at most three decimals, unless a smaller
// suffix gives a much shorter text: 200MB, not 195312.5KiB.
func format(v uint64, suffixes []suffix) string {
	best := ""
	for _, suf := range suffixes {
		if v >= suf.scale && (v%suf.scale*1000)%suf.scale == 0 {
			if s := formatScaled(v, suf.scale) + suf.name; best == "" || len(s)+2 < len(best) {
				best = s
			}
		}
	}
	if best == "" {
		return "0" + suffixes[len(suffixes)-1].name
	}
	return best
}

// formatScaled prints v/scale with up to six decimals. Scales are at most 2^40, so that the
// remainder times a million fits.
func formatScaled(v, scale uint64) string {
	whole, millionths := v/scale, v%scale*1_000_000/scale
	if millionths == 0 {
		return strconv.FormatUint(whole, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%06d", whole, millionths), "0")
}
