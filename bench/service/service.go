package service

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench with every target of the service.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "service",
		Title: "Bandwidth as a service",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Cases: slices.Concat(changeCases(d), scaleCases(), oversoldCases(d), faultCases(), upgradeCases(), cutOffCases(), proofCases(d), securityCases(),
			noisyCases(), strangerCases(), hostileCases(), restoreCases(), jumpCases(), staleCases(), damagedCases(d), suiteCases()),
	}
}

const about = `Controllers are "headgate controller", each with its own etcd, one or three of them in their own
namespaces; clients are in another. Processor time and memory are those of the controllers and their
stores, with all threads, from /proc. Agents that enforce nothing are real streams over mutual
TLS, each with its own certificate, 50 groups and a report a second.

The time of a change is from before the request, over an open connection, to the kernel's
notification that the class has its new rate.

Histories are checked by porcupine for linearizability, against a ledger that grants exactly the requests that
fit. Calls without a response, or with a 5xx, may have been executed or not.`

// Targets of the service.
var (
	changeP50  = bench.Target{Op: "<=", Value: 20, Unit: "ms"}
	changeP99  = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	cores      = bench.Target{Op: "<=", Value: 0.5, Unit: "cores"}
	memory     = bench.Target{Op: "<=", Value: 600, Unit: "MiB"}
	lost       = bench.Target{Op: "<=", Value: 0, Unit: "reports"}
	apiP99     = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	back       = bench.Target{Op: "<=", Value: 10, Unit: "s"}
	violations = bench.Target{Op: "<=", Value: 0, Unit: "violations"}
	full       = bench.Target{Op: "<=", Value: 100, Unit: "% of capacity"}
	changes    = bench.Target{Op: "<=", Value: 0, Unit: "changes"}
	measured   = bench.Target{Op: bench.Measured, Unit: "requests"}
)

// smoke runs cases of a smoke run in parallel.
func smoke(batch string) func(quick bool) string {
	return func(quick bool) string {
		if quick {
			return batch
		}
		return ""
	}
}

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "change", What: "API call to the new rate in the kernel: p50 <= 20 ms, p99 <= 100 ms with 100 agents under load"},
	{ID: "scale", What: "2,000 agent streams (mutual TLS) x 50 groups at 1 Hz, 50 watchers: controller and store <= 0.5 core and <= 600 MiB in all (bare streams cost 0.11 core and 228 MiB here), no report lost, API p99 <= 100 ms; all agents back within 10 s of the leader's loss. 10,000 agents x 20 groups at 1 Hz, one controller: <= 1 core, <= 1.5 GiB, p99 <= 100 ms; all back <= 20 s after the leader's loss"},
	{ID: "never-oversold", What: "1,000 concurrent requests for guarantees, leader killed among them: linearizable (porcupine; timed-out calls unknown), sum <= capacity, no refusal where it fitted, every acknowledged change there after restart, restore and fail-over"},
	{ID: "faults", What: "three controllers in namespaces: kill, SIGSTOP, partition, clock skew, full disk; agents go on enforcing; never two leaders obeyed; new leader <= 6 s, service <= 10 s (full disk: from when space is freed)"},
	{ID: "upgrade", What: "agent killed and replaced (same and changed map layout) under 1 Gbit/s: 0 packets lost, counters go on"},
	{ID: "proof", What: "delivered bytes within 0.1 % of a capture; unmet seconds exactly those that a scripted fault made"},
	{ID: "noisy", What: "one tenant at every bound at once: others' change p99 <= 100 ms, controller and store <= 600 MiB, no agent cut off"},
	{ID: "strangers", What: "10,000 unread, silent, slow or half-open connections without a token: an operator is in within 1 s, memory <= 200 MiB more"},
	{ID: "host", What: "an agent in wrong hands at its worst: others' p99 <= 100 ms, <= 200 MiB more, named in events"},
	{ID: "damaged", What: "each file of controller and agent emptied, cut, zeroed, 200 random flips: service or enforcement as before <= 10 s, or one sentence; nothing acknowledged lost"},
	{ID: "clock", What: "jumps of +-8 h, +-2 and 45 days, 1970 at first start: up <= 10 s after the clock is right"},
	{ID: "restore", What: "revoked stays revoked; agents ahead taken back by one command"},
	{ID: "clients", What: "three generated clients call every operation; validators clean"},
	{ID: "true", What: "12 ways of being cut off: page, CLI and API say stale within 5 s"},
	{ID: "cases", What: "every script of reported cases exits 0"},
	{ID: "journey", What: "README and every guide, pasted into a fresh machine by a test: each command works, times printed"},
	{ID: "security", What: "every operation of the spec walked as each role and as a foreign tenant; no unauthenticated route but health and login; TLS by default, loopback only until configured; schemathesis: no 5xx but 503 with Retry-After, every operation reaches a 2xx, answers match the schema"},
}
