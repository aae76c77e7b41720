package rounded_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit/rounded"
)

// Measured values have three digits and a unit.
func Example() {
	fmt.Println(rounded.Rate(95_512_345))
	fmt.Println(rounded.Bytes(1536 << 20))
	fmt.Println(rounded.Delay(1234 * time.Microsecond))
	fmt.Println(rounded.PerSecond(12_345), "packets/s")
	// Output:
	// 95.5Mbit
	// 1.50GiB
	// 1.23ms
	// 12.3k packets/s
}
