package controller

import (
	"math"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric/live"
)

// known returns a value that a port counts, nil if it does not (fabric.Traffic).
func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// rateOf returns a rate in whole bit/s, nil if it is not known.
func rateOf(v float64) *int64 {
	if math.IsNaN(v) {
		return nil
	}
	rate := int64(math.Round(v))
	return &rate
}

// historyOf returns the API form of a port's history. What is not counted is 0.
func historyOf(h live.History) api.NetworkLinkHistory {
	every := h.Interval.Nanoseconds()
	out := api.NetworkLinkHistory{From: portIDOf(h.From), To: optionalPort(h.To), IntervalNs: &every, Items: []api.NetworkLinkReading{}}
	for _, one := range h.Items {
		if rate := rateOf(one.Rate); rate != nil {
			out.Items = append(out.Items, api.NetworkLinkReading{At: one.At, RateBps: *rate, DropsPerS: orZero(one.Drops), ErrorsPerS: orZero(one.Errors)})
		}
	}
	return out
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
