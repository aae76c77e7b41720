package service

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench is every row of the table in the issue that asked for the service.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "service",
		Title: "Bandwidth as a service",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Cases: slices.Concat(changeCases(d), scaleCases(), oversoldCases(d), faultCases(), upgradeCases(), cutOffCases(), proofCases(d), securityCases()),
	}
}

const about = `Controllers are "headgate controller", each with its own etcd, one or three of them in namespaces
of their own; who asks is in another. Processor time and memory are of the controllers and their
stores, with all threads, from /proc. Agents that enforce nothing are real streams over mutual
TLS, each with a certificate of its own, 50 groups and a report a second.

A change is timed from before the request, over a connection that is open, to the kernel's
notification that the class has its new rate.

Histories are held by porcupine against a ledger that takes what fits and nothing else. Calls
that were not answered, or with 5xx, may have happened or not.`

// Targets, from the table of the issue that asked for the service.
var (
	changeHalf = bench.Target{Op: "<=", Value: 20, Unit: "ms"}
	changeMost = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	cores      = bench.Target{Op: "<=", Value: 0.5, Unit: "cores"}
	memory     = bench.Target{Op: "<=", Value: 600, Unit: "MiB"}
	lost       = bench.Target{Op: "<=", Value: 0, Unit: "reports"}
	apiMost    = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	back       = bench.Target{Op: "<=", Value: 10, Unit: "s"}
	violations = bench.Target{Op: "<=", Value: 0, Unit: "violations"}
	full       = bench.Target{Op: "<=", Value: 100, Unit: "% of capacity"}
	changes    = bench.Target{Op: "<=", Value: 0, Unit: "changes"}
	measured   = bench.Target{Op: bench.Measured, Unit: "requests"}
)

// smoke has cases of a smoke run go on at the same time.
func smoke(batch string) func(quick bool) string {
	return func(quick bool) string {
		if quick {
			return batch
		}
		return ""
	}
}

// rows are the table's rows, in its words.
var rows = []bench.Row{
	{ID: "change", What: "API call to the new rate in the kernel: p50 <= 20 ms, p99 <= 100 ms with 100 agents under load"},
	{ID: "scale", What: "2,000 agent streams (mutual TLS) x 50 groups at 1 Hz, 50 watchers: controller and store <= 0.5 core and <= 600 MiB in all (bare streams cost 0.11 core and 228 MiB here), no report lost, API p99 <= 100 ms; all agents back within 10 s of the leader's loss"},
	{ID: "never-oversold", What: "1,000 concurrent requests for guarantees, leader killed among them: linearizable (porcupine; timed-out calls unknown), sum <= capacity, no refusal where it fitted, every acknowledged change there after restart, restore and fail-over"},
	{ID: "faults", What: "three controllers in namespaces: kill, SIGSTOP, partition, clock skew, full disk; agents go on enforcing; never two leaders obeyed; new leader <= 6 s, service <= 10 s (full disk: from when space is freed)"},
	{ID: "upgrade", What: "agent killed and replaced (same and changed map layout) under 1 Gbit/s: 0 packets lost, counters go on"},
	{ID: "proof", What: "delivered bytes within 0.1 % of a capture; unmet seconds exactly those that a scripted fault made"},
	{ID: "security", What: "every operation of the spec walked as each role and as a foreign tenant; no unauthenticated route but health and login; TLS by default, loopback only until configured; schemathesis: no 5xx but 503 with Retry-After, every operation reaches a 2xx, answers match the schema"},
}
