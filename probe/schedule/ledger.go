package schedule

import "headgate/unit"

// Ledger is what measurements brought through a host on a day, and may still bring.
type Ledger struct {
	Day   string     `json:"day"`
	Bytes unit.Bytes `json:"bytes"`
}

// On is what was brought on a day.
func (l Ledger) On(day string) unit.Bytes {
	if l.Day != day {
		return 0
	}
	return l.Bytes
}

// Reserve counts what a measurement may bring that begins on a day.
func (l Ledger) Reserve(day string, cost unit.Bytes) Ledger { return Ledger{day, l.On(day) + cost} }

// Settle counts what a measurement has brought that is over on a day, in place of what was reserved.
// If it began on another day all of it counts for this one, too; until it is over no other begins at
// its hosts.
func (l Ledger) Settle(r Run, day string, brought unit.Bytes) Ledger {
	has := l.On(day)
	if r.Day == day {
		has -= min(has, r.Reserved)
	}
	return Ledger{day, has + brought}
}
