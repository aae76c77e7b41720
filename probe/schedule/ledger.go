package schedule

import "headgate.dev/headgate/unit"

// Ledger has the bytes that measurements have sent or reserved at a host on a day.
type Ledger struct {
	Day   string     `json:"day"`
	Bytes unit.Bytes `json:"bytes"`
}

// On returns the bytes of a day.
func (l Ledger) On(day string) unit.Bytes {
	if l.Day != day {
		return 0
	}
	return l.Bytes
}

// Reserve adds the cost of a measurement that begins on a day.
func (l Ledger) Reserve(day string, cost unit.Bytes) Ledger { return Ledger{day, l.On(day) + cost} }

// Settle replaces the reservation of a measurement that ended on a day by its actual
// bytes. If the measurement began on another day, all of its bytes count on this day,
// too. No other measurement begins at its hosts before it ends.
func (l Ledger) Settle(r Run, day string, brought unit.Bytes) Ledger {
	has := l.On(day)
	if r.Day == day {
		has -= min(has, r.Reserved)
	}
	return Ledger{day, has + brought}
}
