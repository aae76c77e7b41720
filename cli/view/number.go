package view

import "headgate/unit/rounded"

// The formats of measured values, also for what is printed beside a view.
var (
	Rate   = rounded.Rate
	Amount = rounded.Amount
	Bytes  = rounded.Bytes
	Delay  = rounded.Delay
	Digits = rounded.Digits

	perSecond = rounded.PerSecond
)
