package share

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit"
)

// Constants from the paper.
const (
	// SeedQuantum is the interval between two calls of Tick (appendix B, timerBytesSent).
	SeedQuantum = time.Second

	// The step: SCTP_DEFAULT_MINWINDOW (appendix B) is 1500 bytes in Linux
	// (include/net/sctp/constants.h), at the test's limit of 100,000 bytes (chapter V). The
	// text has 15,000 bytes (chapter III) and one MTU (figure IV.2).
	seedStep  = 1500
	seedLimit = 100_000

	// A packet is marked when at most this many MTUs of the total are left (chapter IV;
	// appendix B, incomingChunk).
	seedMarkMTUs = 2
)

// Constants of Headgate.
const (
	// quantumMTU is the MTU of Ethernet, on which the seed was measured.
	quantumMTU = 1500
)

// QuantumForRate returns the configuration for a limit and guarantees per second and a quantum
// of any length, rounded down to whole bytes. The step is the seed's 1.5 % of the limit, and
// the MTU is 1500. The algorithm counts only payload, so rates are payload rates here, not
// layer-2 rates.
//
// The arithmetic differs from the source, which rounds the inverse of a whole percentage
// (100,000 / 30 = 3333) and so computes 30 % of 100,000 bytes as 30,003.
func QuantumForRate(limit unit.Rate, guarantees []unit.Rate, quantum time.Duration) (QuantumConfig, error) {
	if quantum <= 0 || quantum > time.Hour {
		return QuantumConfig{}, fmt.Errorf("a quantum of %v is out of range: use more than zero and at most 1h", quantum)
	}
	if limit > unit.MaxRate {
		return QuantumConfig{}, fmt.Errorf("a limit of %v exceeds the maximum of %v", limit, unit.MaxRate)
	}
	cfg := QuantumConfig{Limit: bytesIn(limit, quantum), MTU: quantumMTU}
	// With a lower limit, not even one full packet would pass per quantum, and every packet
	// would be marked.
	if least := uint64(seedMarkMTUs * quantumMTU); cfg.Limit <= least {
		return QuantumConfig{}, fmt.Errorf("a quantum of %v at %v is %d bytes and must exceed two packets (%d bytes): use a longer quantum",
			quantum, limit, cfg.Limit, least)
	}
	for i, g := range guarantees {
		if g > limit {
			return QuantumConfig{}, fmt.Errorf("guarantee %d of %v exceeds the limit of %v", i, g, limit)
		}
		cfg.Configured = append(cfg.Configured, bytesIn(g, quantum))
	}
	// A step of zero would never lend anything; Limit > 3000 makes it 45 or more.
	cfg.Step = mulDiv(cfg.Limit, seedStep, seedLimit)
	return cfg, nil
}

func bytesIn(r unit.Rate, d time.Duration) uint64 {
	return mulDiv(uint64(r), uint64(d), 8*uint64(time.Second))
}
