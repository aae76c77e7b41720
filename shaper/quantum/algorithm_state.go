package quantum

import (
	"encoding/json"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// kernelState is struct quantum in policer.c.
type kernelState struct {
	Lock, Generation, ResetAsked         uint32
	Overdrawn, Barred                    uint8
	_                                    uint16
	EndsNS, Used, Pool, Resets, Enforced uint64
	Groups                               [maxGroups]struct{ Actual, Passed, Dropped uint64 }
}

// algorithm adds the state of the algorithm to d.
func algorithm(s *attach.Side, d *shaper.DirectionState) error {
	if s.Record.Build != classifier.Build(_PolicerBytes) {
		return nil // layout of another Headgate version; the next apply replaces it
	}
	var set settings
	if err := json.Unmarshal(s.Record.Options, &set); err != nil {
		return fmt.Errorf("cannot read the options in force: %w", err)
	}
	cfg, err := set.config(*s.Record.Tree())
	if err != nil {
		return fmt.Errorf("the options in force are invalid: %w", err)
	}
	var q kernelState
	if err := s.Maps[quantumMap].LookupWithFlags(uint32(0), &q, ebpf.LookupLock); err != nil {
		return fmt.Errorf("cannot read the state of the algorithm: %w", err)
	}
	var asked uint32
	if err := s.Maps[resetsMap].Lookup(uint32(0), &asked); err != nil {
		return fmt.Errorf("cannot read the state of the algorithm: %w", err)
	}
	var now unix.Timespec // the clock of bpf_ktime_get_ns
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("cannot read the clock: %w", err)
	}
	number := func(node int) int { return int(s.Record.Class(s.Record.Tree().Nodes[node])) - firstMinor }
	q.advance(uint64(now.Nano()), uint64(set.quantum()), cfg, number, q.Generation != s.Record.Generation || q.ResetAsked != asked)

	rate := func(bytes uint64) unit.Rate { return unit.Rate(float64(bytes) * 8 / set.quantum().Seconds()) }
	d.Quantum = &shaper.QuantumState{
		Mode: shaper.Normal, Quantum: set.quantum(), StepBytes: cfg.Step, Overdraft: set.Overdraft,
		LimitBytes: cfg.Limit, UsedBytes: q.Used, PoolBytes: q.Pool, Pool: rate(q.Pool), Resets: q.Resets,
	}
	for node := range cfg.Configured {
		i := number(node)
		g := &shaper.QuantumGroupState{Mode: shaper.Normal, ActualBytes: q.Groups[i].Actual, Actual: rate(q.Groups[i].Actual)}
		if q.Groups[i].Actual == cfg.Configured[node] {
			g.Actual = d.Groups[node].Guarantee // ActualBytes is rounded from the guarantee
		}
		if q.Groups[i].Dropped > 0 || q.Enforced>>i&1 != 0 {
			g.Mode, d.Quantum.Mode = shaper.Enforcement, shaper.Enforcement
		}
		d.Groups[node].Quantum = g
	}
	return nil
}

// advance updates the state as the program would at the next packet: it ends the quanta that
// have passed (end_quanta), and resets if a reset was requested (reset).
func (q *kernelState) advance(now, quantum uint64, cfg share.QuantumConfig, number func(node int) int, reset bool) {
	if q.EndsNS != 0 && now >= q.EndsNS {
		idle, enforced := (now-q.EndsNS)/quantum, uint64(0)
		for i := range q.Groups {
			g := &q.Groups[i]
			give := func(steps uint64) {
				g.Actual -= steps * cfg.Step
				q.Pool += steps * cfg.Step
			}
			if g.Passed+cfg.Step <= g.Actual {
				give(1)
			}
			if g.Dropped > 0 && idle == 0 {
				enforced |= 1 << i
			}
			g.Passed, g.Dropped = 0, 0
			give(min(g.Actual/cfg.Step, idle))
		}
		q.Used, q.Enforced = 0, enforced
		q.EndsNS += (idle + 1) * quantum
	}
	if !reset {
		return
	}
	if q.Generation != 0 { // the first configuration is not a reset
		q.Resets++
	}
	q.Pool = 0
	for node, bytes := range cfg.Configured {
		q.Groups[number(node)].Actual = bytes
	}
}
