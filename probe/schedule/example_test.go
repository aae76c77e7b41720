package schedule_test

import (
	"fmt"
	"time"

	"headgate.dev/headgate/probe/schedule"
)

// Three hosts measure the token rate of all paths between them every six hours, but not in working
// hours. A host takes part in one measurement at a time.
func ExampleSchedule_Next() {
	s := schedule.Schedule{
		Measures: []schedule.Measure{{Measure: "tokenrate", Every: schedule.Duration(6 * time.Hour)}},
		Budget:   100_000_000,
		Quiet:    []schedule.Window{{From: 8 * 60, To: 18 * 60}},
	}.WithDefaults()
	fmt.Println("problems:", len(s.Check()))

	state := schedule.State{Hosts: []string{"fra", "ams", "lab"}}
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	fmt.Println("12:00", s.Next(day.Add(12*time.Hour), state))
	fmt.Println("20:00", s.Next(day.Add(20*time.Hour), state))

	// An hour after its measurement the first pair is not due yet, and the next one starts.
	state.Last = map[schedule.Task]schedule.Last{
		{From: "ams", To: "fra", Measure: "tokenrate"}: {At: day.Add(20 * time.Hour)},
	}
	fmt.Println("21:00", s.Next(day.Add(21*time.Hour), state))
	// Output:
	// problems: 0
	// 12:00 []
	// 20:00 [{ams fra tokenrate}]
	// 21:00 [{ams lab tokenrate}]
}
