package unit_test

import (
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/unit"
)

func ExampleParseRate() {
	limit, err := unit.ParseRate("1.5Gbit")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limit, "is", uint64(limit), "bit/s, or", limit.BytesPerSecond(), "bytes/s")

	// The error for a common mistake has the correct notation.
	_, err = unit.ParseRate("12MB/s")
	fmt.Println(err)
	// Output:
	// 1.5Gbit is 1500000000 bit/s, or 187500000 bytes/s
	// "12MB/s" is in bytes, and rates are in bits per second: a byte has 8 bits, so write 96Mbit
}

func ExampleParseBytes() {
	for _, text := range []string{"64KiB", "1500B", "1MB"} {
		size, err := unit.ParseBytes(text)
		fmt.Println(uint64(size), size, err)
	}
	// Output:
	// 65536 64KiB <nil>
	// 1500 1.5kB <nil>
	// 1000000 1MB <nil>
}

func ExampleShare_Of() {
	share, err := unit.ParseShare("12.5%")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(share, "of", unit.Gbit, "is", share.Of(unit.Gbit))
	// Output: 12.5% of 1Gbit is 125Mbit
}

// Quantities are text in JSON and YAML, so that a value is unchanged when it is read and written.
func ExampleRate_MarshalText() {
	type link struct {
		Limit unit.Rate  `json:"limit"`
		Queue unit.Bytes `json:"queue"`
	}
	text, err := json.Marshal(link{100 * unit.Mbit, 65536})
	fmt.Println(string(text), err)
	var back link
	err = json.Unmarshal(text, &back)
	fmt.Println(back.Limit == 100*unit.Mbit, back.Queue == 65536, err)
	// Output:
	// {"limit":"100Mbit","queue":"64KiB"} <nil>
	// true true <nil>
}

// A guarantee counts as met within the tolerance of the shaper.
func ExampleMet() {
	fmt.Println(unit.Met(98e6, 100e6), unit.Met(90e6, 100e6))
	// Output: true false
}
