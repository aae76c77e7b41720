package probing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The provider of the row "tune", and the tenant's groups behind it.
const (
	providerRate   = 500 * unit.Mbit
	providerBucket = 5_000_000
)

var tenantGroups = []struct {
	name  string
	share float64
}{{"a", 0.4}, {"b", 0.3}, {"c", 0.2}, {"d", 0.1}}

const tuneRow = "tune/500Mbit-5MB"

func tuneCase() bench.Case {
	claims := []bench.Claim{
		bench.NewClaim(tuneRow+"/loss", "segments that the provider dropped, relative to those without limits", tunedLoss),
		bench.NewClaim(tuneRow+"/goodput", "total goodput of all groups, relative to the maximum at R", tunedGoodput, "without"),
		bench.NewClaim(tuneRow+"/limit", "error of the token rate from which the limit was set", measuredOnly("%")),
	}
	for _, g := range tenantGroups {
		claims = append(claims, bench.NewClaim(tuneRow+"/group-"+g.name, "goodput, relative to the guarantee, which is a part of the limit", guaranteed, "without"))
	}
	return bench.Case{
		Name: tuneRow, Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 21*time.Second, 70*time.Second) },
		Run:   runTune,
	}
}

func runTune(ctx context.Context, r *bench.Run) error {
	s := link.Spec{
		Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 20 * time.Millisecond},
		Bucket: &link.Bucket{Rate: providerRate, Size: providerBucket},
	}
	return withServer(ctx, twoHosts(s), func(on *stage) error { return on.tune(ctx, r) })
}

// tune measures the groups' traffic without Headgate's limits, then with those of "headgate tune".
func (s *stage) tune(ctx context.Context, r *bench.Run) error {
	took := bench.Pick(r.Quick, 7*time.Second, 30*time.Second)
	before, dropped, err := s.tenants(ctx, took)
	if err != nil {
		return err
	}
	limit, err := s.applyTuned(ctx)
	if err != nil {
		return err
	}
	after, left, err := s.tenants(ctx, took)
	if err != nil {
		return err
	}
	const framed = 1448.0 / 1514
	sheet, without := r.Sheet(bench.Ours), r.Sheet("without")
	if dropped == 0 {
		return fmt.Errorf("the provider also dropped nothing without limits")
	}
	sheet.Set(tuneRow+"/loss", 100*float64(left)/float64(dropped))
	sheet.Note(tuneRow+"/loss", "%d of %d segments, each in %v", left, dropped, took)
	sum := func(rates map[string]float64) (all float64) {
		for _, v := range rates {
			all += v
		}
		return all
	}
	sheet.Set(tuneRow+"/goodput", 100*sum(after)/(framed*float64(providerRate)))
	without.Set(tuneRow+"/goodput", 100*sum(before)/(framed*float64(providerRate)))
	sheet.Set(tuneRow+"/limit", 100*(float64(limit)/float64(providerRate)-1))
	sheet.Note(tuneRow+"/limit", "the limit is %s", limit)
	for _, g := range tenantGroups {
		sheet.Set(tuneRow+"/group-"+g.name, 100*after[g.name]/(framed*g.share*float64(limit)))
		without.Set(tuneRow+"/group-"+g.name, 100*before[g.name]/(framed*g.share*float64(limit)))
	}
	return nil
}

// tenants runs two connections of each group for a while and returns their goodput in the second half,
// when the bucket is empty, and the provider's drops in all of it.
func (s *stage) tenants(ctx context.Context, took time.Duration) (rates map[string]float64, dropped uint64, err error) {
	var flows []traffic.Flow
	for i, g := range tenantGroups {
		for k := range 2 {
			flows = append(flows, traffic.Flow{
				Name: fmt.Sprintf("%s%d", g.name, k), From: client, To: server, Protocol: traffic.TCP, DstPort: uint16(5001 + 10*i + k),
				Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited),
			})
		}
	}
	start, _ := s.WireStats(0)
	got, err := traffic.Run(ctx, s.Host, flows, traffic.Options{Duration: took, Interval: 250 * time.Millisecond})
	if err != nil {
		return nil, 0, err
	}
	end, _ := s.WireStats(0)
	rates = map[string]float64{}
	for _, f := range got.Flows {
		if f.Error != "" {
			return nil, 0, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
		rates[f.Name[:1]] += got.Flow(f.Name).Between(took/2, took).DeliveredRate() * 1448 / 1514
	}
	return rates, end[0].Drops() - start[0].Drops(), ctx.Err()
}

// applyTuned makes tune set the limits of the tenant's groups, and returns the outgoing one.
func (s *stage) applyTuned(ctx context.Context) (unit.Rate, error) {
	device, err := s.Node(client).Device(server)
	if err != nil {
		return 0, err
	}
	var config strings.Builder
	fmt.Fprintf(&config, "kind: Interface\ndev: %s\nout:\n  limit: 900Mbit\n  groups:\n", device)
	for i, g := range tenantGroups {
		fmt.Fprintf(&config, "    - {name: %s, guarantee: %.0f%%, match: [{proto: tcp, dport: %d-%d}]}\n", g.name, 100*g.share, 5001+10*i, 5002+10*i)
	}
	config.WriteString("    - {name: rest, default: true}\n")
	file := filepath.Join(s.dir, "groups.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		return 0, err
	}
	var limit unit.Rate
	run := func(args ...string) (string, error) {
		c, err := s.headgate(ctx, client, args...)
		if err != nil {
			return "", err
		}
		var said bytes.Buffer
		c.Stderr = &said
		out, err := c.Output()
		if err != nil {
			return "", fmt.Errorf("headgate %s: %w: %s%s", strings.Join(args, " "), err, said.String(), out)
		}
		return string(out), nil
	}
	out, err := run("tune", device, "--peer", addressOf, "--key-file", s.key(), "-f", file, "-o", "json", "--apply")
	if err != nil {
		return 0, err
	}
	if limit, err = tunedLimit(out); err != nil {
		return 0, err
	}
	_, err = run("confirm")
	return limit, err
}

// tunedLimit returns the outgoing limit that tune has set.
func tunedLimit(report string) (unit.Rate, error) {
	var r struct {
		Proposals map[string]struct {
			Limit  unit.Rate `json:"limit"`
			Cannot string    `json:"cannot_tell"`
		} `json:"proposals"`
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		return 0, err
	}
	if p := r.Proposals["out"]; p.Limit == 0 {
		return 0, fmt.Errorf("headgate tune proposes no limit: %s", p.Cannot)
	}
	return r.Proposals["out"].Limit, nil
}
