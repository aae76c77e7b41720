package groups

import (
	"slices"

	"headgate/bench"
)

// Bench is `headgate bench groups`.
func Bench() bench.Bench {
	return bench.Bench{
		Name: "groups", Title: "Bandwidth groups on an interface", About: about, Rows: rows,
		Cases: slices.Concat(rampBenches(), wakeBenches(), latencyBenches(), spareBenches(), costBenches(), scaleBenches()),
	}
}

const about = `The network is three namespaces, client, router and server, on one machine, joined
by veth pairs; Headgate shapes the server's device. Offered and measured rates are
layer-2 bytes on the wire: a full TCP segment of 1,448 bytes is a frame of 1,514,
so that TCP's ceiling is 1448/1514 of the limit.

A rate is what arrives at the receiving socket, counted in the kernel in layer-2
bytes, with super-packets as the frames they stand for; for "in" this is after
the IFB and its queues. Totals are goodput: what the receiving program read, as
full frames, so that a segment that arrives twice counts once.`
