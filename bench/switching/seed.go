package switching

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed seed.txt
var seedTable string

// The measures of a cell.
const (
	cpu = iota // the host's used processor time, in % of one
	vm1vm2
	vm2pm
	pmvm1 // received throughput, Mbit/s
	measures
)

// measureNames are the last words of claim ids.
var measureNames = [measures]string{"cpu", "vm1-vm2", "vm2-pm", "pm-vm1"}

// The thesis's two switches.
const (
	seedBridge = iota
	seedOpenvSwitch
	seedSwitches
)

// seedRates are the requested rates of the thesis, in Mbit/s.
var seedRates = []int{5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55}

// seedMeans are the means of the thesis's ten measurements, by requested Mbit/s.
var seedMeans = meansOf(seedTable)

type seedCells [seedSwitches][measures]float64

func meansOf(table string) map[int]seedCells {
	sums, count := map[int]seedCells{}, map[int]float64{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var rate int
		var c seedCells
		a, b := &c[seedBridge], &c[seedOpenvSwitch]
		_, err := fmt.Sscan(line, &rate, &a[0], &a[1], &a[2], &a[3], &b[0], &b[1], &b[2], &b[3])
		if err != nil {
			panic(fmt.Sprintf("switching: seed.txt: %q: %v", line, err))
		}
		sum := sums[rate]
		for i := range c {
			for j := range c[i] {
				sum[i][j] += c[i][j]
			}
		}
		sums[rate], count[rate] = sum, count[rate]+1
	}
	for rate, sum := range sums {
		for i := range sum {
			for j := range sum[i] {
				sum[i][j] /= count[rate]
			}
		}
		sums[rate] = sum
	}
	return sums
}
