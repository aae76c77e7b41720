package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
)

// reservationFlags are the flags that describe a new reservation.
type reservationFlags struct {
	from, to, protocol, start, until, disjoint string
	ports                                      string
	rate, back                                 rateFlag
	volume                                     bytesFlag
	class, paths                               int
	length                                     time.Duration
	protected                                  bool
	push, carry                                string
}

const momentUsage = "such as 18:00, \"2026-05-01 18:00\", 2026-05-01T18:00:00Z or +2h"

func newReservationFlags(c *cobra.Command) *reservationFlags {
	f := &reservationFlags{}
	c.Flags().StringVar(&f.from, "from", "", "the `END` from which the traffic comes: a host by its name, address or MAC, site:NAME, a prefix, or vlan:NUMBER, with @SWITCH/PORT if the network does not know the port")
	c.Flags().StringVar(&f.to, "to", "", "the `END` to which it goes")
	c.Flags().Var(&f.rate, "rate", "the rate of layer 2, such as 200Mbit")
	c.Flags().Var(&f.back, "back", "the rate of the other direction (default: none)")
	c.Flags().StringVar(&f.protocol, "protocol", "", "only the traffic of this `PROTOCOL`: tcp, udp or another (default: all traffic between the ends)")
	c.Flags().StringVar(&f.ports, "port", "", "only the traffic to these `PORTS` of --protocol: 443 or 5000-5010")
	c.Flags().IntVar(&f.class, "class", 4, "the class: 1 is served first, 4 last")
	c.Flags().StringVar(&f.start, "start", "", "begin at this `TIME`, "+momentUsage+", or with --until at the earliest (default: now)")
	c.Flags().DurationVar(&f.length, "for", 0, "last this long, such as 2h")
	c.Flags().StringVar(&f.until, "until", "", "end by this `TIME`: the reservation begins when there is enough bandwidth")
	c.Flags().Var(&f.volume, "volume", "move this many bytes by --until, such as 2TB: the rate and the duration follow")
	c.Flags().IntVar(&f.paths, "paths", 1, "divide the rate among this many disjoint paths")
	c.Flags().BoolVar(&f.protected, "protected", false, "reserve a disjoint spare path, to which the traffic changes when a path fails")
	f.push = "ahead"
	c.Flags().Var(enumFlag{&f.push, []string{"ahead", "on-demand"}}, "push", "when the switches of the path are programmed: before the start, or when the first packet comes")
	completeFlag(c, "push", oneOf("ahead", "on-demand"))
	c.Flags().Var(enumFlag{&f.carry, []string{"relay"}}, "carry", "relay: relay agents carry the connections, and their streams have the rate (default: the traffic has it itself)")
	completeFlag(c, "carry", oneOf("relay"))
	f.disjoint = string(api.DisjointByLink)
	c.Flags().Var(enumFlag{&f.disjoint, []string{"link", "switch"}}, "disjoint", "what paths do not have in common")
	completeFlag(c, "disjoint", oneOf("link", "switch"))
	completeFlag(c, "protocol", oneOf("tcp", "udp", "sctp", "icmp"))
	completeFlag(c, "class", oneOf("1", "2", "3", "4"))
	requireFlags(c, "from", "to")
	return f
}

// complete registers the completion of the ends, which asks a service.
func (f *reservationFlags) complete(c *cobra.Command, server *string) {
	completeFlag(c, "from", completeNetwork(server, true))
	completeFlag(c, "to", completeNetwork(server, true))
}

// request returns the request that the flags describe.
func (f *reservationFlags) request(c *cobra.Command, q request, now time.Time) (r api.ReservationRequest, err error) {
	set := c.Flags().Changed
	usage := func(format string, args ...any) error {
		return usageError{fmt.Errorf(format, args...), c.CommandPath()}
	}
	switch {
	case set("volume") && (set("rate") || set("back") || set("for")):
		return r, usage("--volume cannot be used with --rate, --back and --for, because they follow from it: remove one of them")
	case set("volume") && !set("until"):
		return r, usage("--until is missing: set it to the time by which the volume is to be moved")
	case !set("volume") && !set("rate"):
		return r, usage("--rate is missing: set it, or --volume and --until")
	case !set("volume") && !set("for"):
		return r, usage("--for is missing: set it to how long the reservation lasts, such as 2h")
	case set("port") && !set("protocol"):
		return r, usage("--protocol is missing: set it to the protocol of --port, such as tcp")
	}
	if r.From, err = parseEnd(q, "from", f.from); err != nil {
		return r, usageError{err, c.CommandPath()}
	}
	if r.To, err = parseEnd(q, "to", f.to); err != nil {
		return r, usageError{err, c.CommandPath()}
	}
	r.Class = &f.class
	if set("rate") {
		r.Rate = new(unit.Rate(f.rate).String())
	}
	if set("back") {
		r.Back = new(unit.Rate(f.back).String())
	}
	if set("volume") {
		r.Volume = new(unit.Bytes(f.volume).String())
	}
	if set("for") {
		r.Duration = new(f.length.String())
	}
	for flag, into := range map[string]**time.Time{"start": &r.Start, "until": &r.Until} {
		if text := c.Flag(flag).Value.String(); text != "" {
			at, err := parseMoment(c, flag, text, now)
			if err != nil {
				return r, err
			}
			*into = &at
		}
	}
	if set("paths") {
		r.Paths = &f.paths
	}
	if f.protected {
		r.Protected = &f.protected
	}
	if f.push == "on-demand" {
		r.OnDemand = new(true)
	}
	if set("carry") {
		r.Carry = new(api.CarryByRelay)
	}
	if set("disjoint") {
		r.Disjoint = new(api.ReservationDisjoint(f.disjoint))
	}
	if set("protocol") {
		r.Flows = &[]api.ReservationFlow{{Protocol: &f.protocol, DestinationPorts: optional(f.ports)}}
	}
	return r, nil
}

// parseEnd parses an end, and asks the service for the id of a switch that is named by its name.
func parseEnd(q request, flag, text string) (e api.ReservationEnd, err error) {
	name, at, hasPort := strings.Cut(text, "@")
	if hasPort {
		sw, number, ok := strings.Cut(at, "/")
		port, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || port < 1 {
			return e, fmt.Errorf("--%s: %q is not a port: write SWITCH/NUMBER after the @, such as s1/3", flag, at)
		}
		id, err := switchID(q, sw)
		if err != nil {
			return e, fmt.Errorf("--%s: %w", flag, err)
		}
		e.At = &api.NetworkPortID{Switch: id, Port: port}
	}
	if site, ok := strings.CutPrefix(name, "site:"); ok {
		e.Site = &site
		return e, nil
	}
	if vlan, ok := strings.CutPrefix(name, "vlan:"); ok {
		n, err := strconv.Atoi(vlan)
		if err != nil || n < 1 || n > 4094 {
			return e, fmt.Errorf("--%s: %q is not a VLAN: write 1 to 4094", flag, vlan)
		}
		e.Vlan = &n
		return e, nil
	}
	if strings.Contains(name, "/") {
		p, err := netip.ParsePrefix(name)
		if err != nil {
			return e, fmt.Errorf("--%s: %q is neither a host nor a prefix: write an address and its length, such as 10.1.0.0/16", flag, name)
		}
		e.Prefix = new(p.Masked().String())
		return e, nil
	}
	if name == "" {
		return e, fmt.Errorf("--%s is empty: write the name or an address of a host", flag)
	}
	e.Host = &name
	return e, nil
}

// moments are the formats of a time, without a zone local.
var moments = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// parseMoment parses a time of a flag: one of moments, a time of the day, which is the next one, or +2h. "" is now.
func parseMoment(c *cobra.Command, flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if ahead, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(ahead); err == nil && d >= 0 {
			return now.Add(d), nil
		}
	}
	for _, format := range moments {
		if t, err := time.ParseInLocation(format, text, time.Local); err == nil {
			return t, nil
		}
	}
	if t, err := time.ParseInLocation("15:04", text, time.Local); err == nil {
		local := now.Local()
		at := time.Date(local.Year(), local.Month(), local.Day(), t.Hour(), t.Minute(), 0, 0, time.Local)
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	return now, usageError{fmt.Errorf("--%s: %q is not a time: write it %s", flag, text, strings.TrimPrefix(momentUsage, "such as ")), c.CommandPath()}
}

// withOffers adds to a refusal the flags with which the same command would be granted at this moment.
func withOffers(err error) error {
	var refused *api.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	var lines []string
	stamp := func(t *time.Time) string { return t.Local().Format(time.RFC3339Nano) }
	if m := refused.Refusal.Most; m != nil {
		var flags []string
		for flag, v := range map[string]*string{"rate": m.Rate, "volume": m.Volume} {
			if v != nil {
				flags = append(flags, "--"+flag+" "+*v)
			}
		}
		if m.Back != nil {
			flags = append(flags, "--back "+*m.Back)
		}
		lines = append(lines, "  "+strings.Join(flags, " "))
	}
	if e := refused.Refusal.Earliest; e != nil && e.Start != nil {
		lines = append(lines, "  --start "+stamp(e.Start))
	}
	if w := refused.Refusal.Window; w != nil && w.Until != nil {
		lines = append(lines, "  --until "+stamp(w.Until))
	}
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%w\nThe same command with one of these would be granted now:\n%s", err, strings.Join(lines, "\n"))
}
