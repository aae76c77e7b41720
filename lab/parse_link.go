package lab

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

func (d *document) link(key string, n ast.Node) (l LinkSpec) {
	var both Path
	offload := true
	var forward, back ast.Node
	var ends []string
	known := d.path(&both)
	known["name"] = scalar(d, &l.Name, word)
	known["ends"] = func(key string, n ast.Node) {
		d.list(key, n, func(key string, n ast.Node) {
			var end string
			scalar(d, &end, word)(key, n)
			ends = append(ends, end)
		})
	}
	known["backend"] = scalar(d, &l.Backend, func(s string) (Backend, error) { return Backend(s), nil })
	known["addresses"] = func(key string, n ast.Node) {
		d.mapping(key, n, fields{"ipv4": scalar(d, &l.IPv4, network), "ipv6": scalar(d, &l.IPv6, network)})
	}
	known["offload"] = func(key string, n ast.Node) {
		scalar(d, &offload, yesNo)(key, n)
		if offload {
			d.offloads = append(d.offloads, key)
		}
	}
	known["late_bound"] = scalar(d, &l.LateBound, positive)
	known["seed"] = scalar(d, &l.Seed, seed)
	known["forward"] = func(_ string, n ast.Node) { forward = n }
	known["back"] = func(_ string, n ast.Node) { back = n }
	d.mapping(key, n, known)
	if len(ends) != 2 {
		d.fail(0, key+".ends", "a link needs two ends: write for example [client, router]")
	} else {
		l.Ends = [2]string(ends)
	}
	// A direction's own values override those of both.
	l.Forward, l.Back, l.NoOffload = both, both, !offload
	if forward != nil {
		d.mapping(key+".forward", forward, d.path(&l.Forward))
	}
	if back != nil {
		d.mapping(key+".back", back, d.path(&l.Back))
	}
	return l
}

// path returns the keys of one direction. A value that is read replaces p's value of that key; values
// that p points to are not changed, because they may be shared.
func (d *document) path(p *Path) fields {
	return fields{
		"rate": scalar(d, &p.Rate, func(s string) (unit.Rate, error) {
			if s == "unlimited" {
				return 0, nil
			}
			r, err := unit.ParseRate(s)
			if err == nil && r == 0 {
				err = fmt.Errorf("a rate of 0 would block all traffic: leave it out for an unlimited link")
			}
			return r, err
		}),
		"delay": scalar(d, &p.Delay, duration),
		"jitter": func(key string, n ast.Node) {
			p.Jitter = link.Jitter{}
			d.shortOr(key, n, scalar(d, &p.Jitter.Amount, duration), fields{
				"amount":  scalar(d, &p.Jitter.Amount, duration),
				"normal":  scalar(d, &p.Jitter.Normal, yesNo),
				"reorder": scalar(d, &p.Jitter.Reorder, yesNo),
			})
		},
		"loss": func(key string, n ast.Node) {
			p.Loss = link.Loss{}
			d.shortOr(key, n, scalar(d, &p.Loss.Probability, percentage), fields{
				"to_bad":  scalar(d, &p.Loss.ToBad, percentage),
				"to_good": scalar(d, &p.Loss.ToGood, percentage),
				"good":    scalar(d, &p.Loss.Good, percentage),
				"bad":     scalar(d, &p.Loss.Bad, percentage),
			})
		},
		"queue": scalar(d, &p.Queue, amount),
		"mark": scalar(d, &p.Mark, func(s string) (link.Amount, error) {
			if s == "none" {
				return link.Amount{}, nil
			}
			return amount(s)
		}),
		"red": orNone(&p.RED, func(key string, n ast.Node) {
			p.RED = &link.RED{}
			known := d.profile(&p.RED.Profile)
			known["weight"] = scalar(d, &p.RED.Weight, fraction)
			known["ecn"] = scalar(d, &p.RED.ECN, yesNo)
			known["classes"] = func(key string, n ast.Node) {
				d.list(key, n, func(key string, n ast.Node) { p.RED.Classes = append(p.RED.Classes, d.redClass(key, n)) })
			}
			d.mapping(key, n, known)
		}),
		"codel": orNone(&p.CoDel, func(key string, n ast.Node) {
			p.CoDel = &link.CoDel{}
			d.mapping(key, n, fields{
				"target":   scalar(d, &p.CoDel.Target, positive),
				"interval": scalar(d, &p.CoDel.Interval, positive),
				"ecn":      scalar(d, &p.CoDel.ECN, yesNo),
			})
		}),
		"bucket": orNone(&p.Bucket, func(key string, n ast.Node) {
			b := &link.Bucket{}
			p.Bucket = b
			d.mapping(key, n, fields{
				"rate":     scalar(d, &b.Rate, unit.ParseRate),
				"size":     scalar(d, &b.Size, unit.ParseBytes),
				"peak":     scalar(d, &b.Peak, unit.ParseRate),
				"peak_low": scalar(d, &b.PeakLow, unit.ParseRate),
				"gift": func(key string, n ast.Node) {
					d.mapping(key, n, fields{"size": scalar(d, &b.Gift, unit.ParseBytes), "every": scalar(d, &b.GiftEvery, positive)})
				},
				"police": scalar(d, &b.Police, yesNo),
			})
		}),
		"xen": orNone(&p.Xen, func(key string, n ast.Node) {
			p.Xen = &link.Xen{}
			d.mapping(key, n, fields{"interval": scalar(d, &p.Xen.Interval, positive), "tokens": scalar(d, &p.Xen.Tokens, unit.ParseBytes)})
		}),
		"active": orNone(&p.Active, func(key string, n ast.Node) {
			p.Active = &link.Active{}
			d.mapping(key, n, fields{"on": scalar(d, &p.Active.On, positive), "off": scalar(d, &p.Active.Off, positive)})
		}),
		"suspension": orNone(&p.Suspension, func(key string, n ast.Node) {
			p.Suspension = &link.Suspension{}
			d.mapping(key, n, fields{"packets": scalar(d, &p.Suspension.Packets, count), "time": scalar(d, &p.Suspension.Time, positive)})
		}),
		"cross": func(key string, n ast.Node) {
			p.Cross = nil
			d.list(key, n, func(key string, n ast.Node) { p.Cross = append(p.Cross, d.cross(key, n)) })
		},
		"exact": scalar(d, &p.Exact, yesNo),
	}
}

// orNone reads a part that a direction may have, or the word none, which removes it in the timeline.
func orNone[T any](to **T, read func(string, ast.Node)) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		if s, ok := text(n); ok && s == "none" {
			*to = nil
			return
		}
		read(key, n)
	}
}

// shortOr reads one value with short, or a mapping.
func (d *document) shortOr(key string, n ast.Node, short func(string, ast.Node), known fields) {
	if _, ok := text(n); ok {
		short(key, n)
		return
	}
	d.mapping(key, n, known)
}

func (d *document) profile(p *link.Profile) fields {
	return fields{
		"min":         scalar(d, &p.Min, amount),
		"max":         scalar(d, &p.Max, amount),
		"probability": scalar(d, &p.Probability, percentage),
	}
}

func (d *document) redClass(key string, n ast.Node) (c link.REDClass) {
	known := d.profile(&c.Profile)
	known["dscp"] = func(key string, n ast.Node) {
		d.list(key, n, func(key string, n ast.Node) {
			var v uint8
			scalar(d, &v, number[uint8](63))(key, n)
			c.DSCP = append(c.DSCP, v)
		})
	}
	d.mapping(key, n, known)
	return c
}

func (d *document) cross(key string, n ast.Node) (c link.Cross) {
	d.mapping(key, n, fields{
		"load":  scalar(d, &c.Load, unit.ParseRate),
		"model": scalar(d, &c.Model, func(s string) (link.Model, error) { return link.Model(s), nil }),
		"shape": scalar(d, &c.Shape, fraction),
		"sizes": func(key string, n ast.Node) {
			d.list(key, n, func(key string, n ast.Node) {
				var b unit.Bytes
				scalar(d, &b, unit.ParseBytes)(key, n)
				c.Sizes = append(c.Sizes, int(min(b, 1<<30)))
			})
		},
		"dscp":  scalar(d, &c.DSCP, number[uint8](63)),
		"start": scalar(d, &c.Start, duration),
		"stop":  scalar(d, &c.Stop, duration),
	})
	return c
}

// amount reads a queue length: a size ("64KiB"), a time ("20ms") or a count ("100 segments").
func amount(s string) (link.Amount, error) {
	if digits, ok := strings.CutSuffix(s, "segments"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil && n > 0 {
			return link.Amount{Segments: n}, nil
		}
	}
	if t, err := time.ParseDuration(s); err == nil && t > 0 {
		return link.Amount{Time: t}, nil
	}
	if b, err := unit.ParseBytes(s); err == nil && b > 0 {
		return link.Amount{Bytes: b}, nil
	}
	return link.Amount{}, fmt.Errorf("%q is not a queue length: write a size, a time or a count, for example 64KiB, 20ms or 100 segments", s)
}

// percentage reads "0.1%" as 0.001. It is a probability, and may be smaller than the resolution of a
// unit.Share.
func percentage(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%q is not a percentage from 0%% to 100%%: write for example 1%%", s)
	}
	return v / 100, nil
}

// fraction reads a plain number, "0.002".
func fraction(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e6) {
		return 0, fmt.Errorf("%q is not a number: write for example 0.002", s)
	}
	return v, nil
}

func count(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return v, nil
}

// positive reads a duration above 0.
func positive(s string) (time.Duration, error) {
	t, err := duration(s)
	if err == nil && t == 0 {
		err = fmt.Errorf("%q is not above 0: write for example 10ms", s)
	}
	return t, err
}

func network(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q is not a network: write for example 192.0.2.0/24 or fd00:1::/64", s)
	}
	return p, nil
}
