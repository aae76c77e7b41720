package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func (d *document) flow(key string, n ast.Node) (f traffic.Flow) {
	f.Protocol = traffic.TCP
	d.mapping(key, n, fields{
		"name":       scalar(d, &f.Name, word),
		"from":       scalar(d, &f.From, word),
		"to":         scalar(d, &f.To, word),
		"proto":      scalar(d, &f.Protocol, func(s string) (traffic.Protocol, error) { return traffic.Protocol(s), nil }),
		"ipv6":       scalar(d, &f.IPv6, yesNo),
		"sport":      scalar(d, &f.SrcPort, number[uint16](65535)),
		"dport":      scalar(d, &f.DstPort, number[uint16](65535)),
		"download":   scalar(d, &f.Download, yesNo),
		"dscp":       scalar(d, &f.DSCP, number[uint8](63)),
		"mark":       scalar(d, &f.Mark, number[uint32](1<<32-1)),
		"congestion": scalar(d, &f.Congestion, word),
		"ecn":        scalar(d, &f.ECN, yesNo),
		"mptcp":      scalar(d, &f.MPTCP, yesNo),

		"send_buffer":    scalar(d, &f.SendBuffer, unit.ParseBytes),
		"receive_buffer": scalar(d, &f.ReceiveBuffer, unit.ParseBytes),
		"window_clamp":   scalar(d, &f.WindowClamp, unit.ParseBytes),

		"backlog": scalar(d, &f.Backlog, duration),
		"start":   scalar(d, &f.Start, duration),
		"stop":    scalar(d, &f.Stop, positive),
		"seed":    scalar(d, &f.Seed, seed),
		"payload": scalar(d, &f.Payload, func(s string) (int, error) {
			b, err := unit.ParseBytes(s)
			return int(min(b, 1<<30)), err
		}),

		"rate": func(key string, n ast.Node) { f.Schedule = d.schedule(key, n) },
		"on_off": func(key string, n ast.Node) {
			o := &traffic.OnOff{}
			f.OnOff = o
			d.mapping(key, n, fields{"rate": scalar(d, &o.Rate, offeredRate), "on": distribution(d, &o.On, duration), "off": distribution(d, &o.Off, duration)})
		},
		"poisson": func(key string, n ast.Node) {
			f.Poisson = &traffic.Poisson{}
			rate := scalar(d, &f.Poisson.Rate, unit.ParseRate)
			d.shortOr(key, n, rate, fields{"rate": rate, "size": distribution(d, &f.Poisson.Size, unit.ParseBytes)})
		},
		"requests": func(key string, n ast.Node) { f.Requests = d.requests(key, n) },
		"transfer": func(key string, n ast.Node) {
			t := &traffic.Transfer{}
			f.Transfer = t
			d.mapping(key, n, fields{
				"size": scalar(d, &t.Size, unit.ParseBytes), "streams": scalar(d, &t.Streams, countFrom1),
				"times": scalar(d, &t.Times, countFrom1), "pause": scalar(d, &t.Pause, duration),
			})
		},
	})
	if f.Schedule == nil && f.OnOff == nil && f.Poisson == nil && f.Requests == nil && f.Transfer == nil {
		d.fail(0, key+".rate", "the flow has no load: write rate: 10Mbit or {0s: 10Mbit, 5s: unlimited}, or on_off, poisson, requests or transfer")
	}
	return f
}

// requests come from users (a closed loop) or at a rate (an open loop).
func (d *document) requests(key string, n ast.Node) *traffic.Requests {
	r := &traffic.Requests{}
	d.mapping(key, n, fields{
		"request":     distribution(d, &r.Request, unit.ParseBytes),
		"response":    distribution(d, &r.Response, unit.ParseBytes),
		"users":       scalar(d, &r.Users, countFrom1),
		"think":       distribution(d, &r.Think, duration),
		"rate":        scalar(d, &r.Rate, perSecond),
		"connections": scalar(d, &r.Connections, countFrom1),
		"max_backlog": scalar(d, &r.MaxBacklog, countFrom1),
		"reconnect":   scalar(d, &r.Reconnect, yesNo),
	})
	return r
}

// distribution reads one value, which is constant, or a kind and its parameters.
func distribution[T unit.Bytes | time.Duration](d *document, to *traffic.Distribution[T], parse func(string) (T, error)) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		always := func(key string, n ast.Node) {
			scalar(d, &to.Mean, parse)(key, n)
			to.Kind = traffic.ConstantKind
		}
		d.shortOr(key, n, always, fields{
			"kind":  scalar(d, &to.Kind, func(s string) (traffic.Kind, error) { return traffic.Kind(s), nil }),
			"mean":  scalar(d, &to.Mean, parse),
			"shape": scalar(d, &to.Shape, fraction),
			"min":   scalar(d, &to.Min, parse),
			"max":   scalar(d, &to.Max, parse),
		})
	}
}

// schedule reads one rate, or a mapping from times to rates.
func (d *document) schedule(key string, n ast.Node) []traffic.Step {
	if _, ok := text(n); ok {
		var r unit.Rate
		scalar(d, &r, offeredRate)(key, n)
		return traffic.Constant(r)
	}
	steps := []traffic.Step{}
	d.pairs(key, n, func(at, key string, n ast.Node) {
		t, err := duration(at)
		if err != nil {
			d.fail(0, key, "%v", err)
			return
		}
		s := traffic.Step{At: t}
		scalar(d, &s.Rate, offeredRate)(key, n)
		steps = append(steps, s)
	})
	return steps
}

func offeredRate(s string) (unit.Rate, error) {
	if s == "unlimited" {
		return traffic.Unlimited, nil
	}
	return unit.ParseRate(s)
}

// countFrom1 reads a number of at least 1; the meaning of 0 is configured by leaving the key out.
func countFrom1(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("%q is not a whole number from 1", s)
	}
	return v, nil
}

// perSecond reads "50/s".
func perSecond(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "/s")
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(v > 0 && v < 1e9) {
		return 0, fmt.Errorf("%q is not a request rate: write for example 50/s", s)
	}
	return v, nil
}
