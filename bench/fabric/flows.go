package fabric

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// flowCount is the counter and the age of a flow.
type flowCount struct {
	packets uint64
	age     time.Duration
}

// dump returns the flows of all switches, by switch and what identifies a flow.
func (n *network) dump(ctx context.Context) (map[string]flowCount, error) {
	all := map[string]flowCount{}
	for _, s := range n.Topology.Switches {
		out, err := n.switches(ctx, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", s.Name)
		if err != nil {
			return nil, err
		}
		for k, f := range parseFlows(out) {
			all[s.Name+" "+k] = f
		}
	}
	return all, nil
}

var flowLine = regexp.MustCompile(`(?m)^ (cookie=\S+), duration=([0-9.]+)s, (table=\d+), n_packets=(\d+), n_bytes=\d+,(.*?) actions=.*$`)

// parseFlows reads the output of "ovs-ofctl dump-flows". A flow is identified by cookie, table, priority and match.
func parseFlows(out string) map[string]flowCount {
	all := map[string]flowCount{}
	for _, m := range flowLine.FindAllStringSubmatch(out, -1) {
		packets, err := strconv.ParseUint(m[4], 10, 64)
		seconds, err2 := strconv.ParseFloat(m[2], 64)
		if err == nil && err2 == nil {
			all[m[1]+" "+m[3]+" "+strings.TrimSpace(m[5])] = flowCount{packets, time.Duration(seconds * 1e9)}
		}
	}
	return all
}

// fell returns the flows that are gone, or whose counters have fallen.
func fell(before, after map[string]flowCount) (out []string) {
	for k, was := range before {
		switch is, ok := after[k]; {
		case !ok:
			out = append(out, k+" is gone")
		case is.packets < was.packets:
			out = append(out, k+" has counted "+strconv.FormatUint(is.packets, 10)+" packets, and had counted "+strconv.FormatUint(was.packets, 10))
		}
	}
	slices.Sort(out)
	return out
}

// younger returns how many flows are younger than they were, with the time that has passed: they were written again.
func younger(before, after map[string]flowCount, passed time.Duration) (n int) {
	for k, was := range before {
		if is, ok := after[k]; ok && is.age < was.age+passed-time.Second {
			n++
		}
	}
	return n
}

// countWord returns how many lines are a word.
func countWord(text, word string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Trim(strings.TrimSpace(line), `"`) == word {
			n++
		}
	}
	return n
}
