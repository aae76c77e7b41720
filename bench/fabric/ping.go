package fabric

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// pingWait is how long an answer may take: resolving an address fails after 3 s.
const pingWait = "4"

// pinged is the round-trip times in ms of the first and the second ping of a pair, and whether each was answered.
type pinged struct {
	first, second     float64
	answered, another bool
}

// ping sends two pings from a host that has forgotten the other's MAC address, as that one has its own.
func ping(ctx context.Context, from, to *lab.Node, six bool) (p pinged, err error) {
	a, err := to.Addr(six)
	if err != nil {
		return p, err
	}
	for _, n := range []*lab.Node{from, to} {
		if out, err := n.Command(ctx, "ip", "neigh", "flush", "all").CombinedOutput(); err != nil {
			return p, fmt.Errorf("ip neigh flush: %w: %s", err, out)
		}
	}
	// Its exit status says only whether something was answered, which the output says too.
	out, err := from.Command(ctx, "ping", "-n", "-c", "2", "-i", "0.1", "-W", pingWait, a.String()).Output()
	if p = parsePings(string(out)); p == (pinged{}) && ctx.Err() == nil && len(out) == 0 {
		return p, fmt.Errorf("ping: %w", err)
	}
	return p, ctx.Err()
}

var pingLine = regexp.MustCompile(`(?m)icmp_seq=(\d+) .*time=([0-9.]+) ms`)

// parsePings reads the output of ping (iputils).
func parsePings(out string) (p pinged) {
	for _, m := range pingLine.FindAllStringSubmatch(out, -1) {
		ms, err := strconv.ParseFloat(m[2], 64)
		switch {
		case err != nil:
		case m[1] == "1":
			p.first, p.answered = ms, true
		case m[1] == "2":
			p.second, p.another = ms, true
		}
	}
	return p
}

// pairs are the ordered pairs of n hosts, from 1. A few of them are a smoke run: from each host to that three further.
func pairs(n int, few bool) (out [][2]int) {
	for a := 1; a <= n; a++ {
		for b := 1; b <= n; b++ {
			if a != b && (!few || b == (a+2)%n+1) {
				out = append(out, [2]int{a, b})
			}
		}
	}
	return out
}

// firstPings are the results of pings between pairs.
type firstPings struct {
	over   []float64 // first minus second, ms
	first  []float64
	lost   int // pings without an answer
	failed []string
}

// pingPairs pings between pairs, one after the other.
func pingPairs(ctx context.Context, l *lab.Lab, all [][2]int, six bool) (f firstPings, err error) {
	for _, p := range all {
		one, err := ping(ctx, l.Node(hostName(p[0])), l.Node(hostName(p[1])), six)
		if err != nil {
			return f, err
		}
		f.add(hostName(p[0])+" to "+hostName(p[1]), one)
	}
	return f, nil
}

// add adds the pings of a pair. Without an answer to the first the pair has no difference, and counts as lost.
func (f *firstPings) add(who string, p pinged) {
	for _, ok := range []bool{p.answered, p.another} {
		if !ok {
			f.lost++
		}
	}
	if !p.answered || !p.another {
		f.failed = append(f.failed, who)
	}
	if p.answered {
		f.first = append(f.first, p.first)
	}
	if p.answered && p.another {
		f.over = append(f.over, p.first-p.second)
	}
}

// everyPing pings between two hosts again and again, each time as if they had never met, until ctx ends.
func everyPing(ctx context.Context, from, to *lab.Node, pause time.Duration) (f firstPings, err error) {
	for ctx.Err() == nil {
		one, err := ping(ctx, from, to, false)
		if ctx.Err() != nil {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.add(from.Name+" to "+to.Name, one)
		_ = bench.Sleep(ctx, pause)
	}
	return f, nil
}

// steadyPing pings every 200 ms for some time, and returns how many pings were not answered.
func steadyPing(ctx context.Context, from, to *lab.Node, lasts time.Duration) (lost int, err error) {
	a, err := to.Addr(false)
	if err != nil {
		return 0, err
	}
	n := int(lasts / (200 * time.Millisecond))
	out, _ := from.Command(context.WithoutCancel(ctx), "ping", "-n", "-c", strconv.Itoa(n), "-i", "0.2", "-W", "1", a.String()).Output()
	sent, received, ok := parseLoss(string(out))
	if !ok {
		return 0, fmt.Errorf("ping has no summary: %s", bench.LastLines(string(out)))
	}
	return sent - received, nil
}

var pingSummary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// parseLoss reads the summary of ping (iputils).
func parseLoss(out string) (sent, received int, ok bool) {
	m := pingSummary.FindStringSubmatch(out)
	if m == nil {
		return 0, 0, false
	}
	sent, err := strconv.Atoi(m[1])
	received, err2 := strconv.Atoi(m[2])
	return sent, received, err == nil && err2 == nil
}
