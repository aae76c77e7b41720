package hostsurvey

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/unit"
)

// Margins below the link's capacity, chosen by Headgate (docs/configuration.md, "Limits").
const (
	outMargin = unit.Whole / 100
	inMargin  = unit.Whole / 20
)

// The kernel counts a frame with its header of 14 bytes. On the wire, Ethernet adds 24 bytes of
// checksum, preamble and gap (IEEE 802.3, clauses 3 and 4.4.2).
const ethernetHeader, ethernetWire = 14, 24

// carriedRate returns the rate of full frames on the link, as the kernel counts them. A rate set by the
// user comes from a contract or a measurement, and needs no conversion.
func (c *Interface) carriedRate() float64 {
	if c.SpeedGiven {
		return float64(c.Speed)
	}
	frame := float64(c.mtu + ethernetHeader)
	return float64(c.Speed) * frame / (frame + ethernetWire)
}

// limit sets the limits of the link, if its speed is known.
func (c *Interface) limit() {
	if c.Speed == 0 {
		return
	}
	c.Out = tune.ReduceBy(c.carriedRate(), outMargin)
	if c.NoIn == "" {
		c.In = tune.ReduceBy(c.carriedRate(), inMargin)
	}
}

// Text returns the configuration: YAML, with the reason for each value as a comment.
func (r *Report) Text() string {
	var b strings.Builder
	b.WriteString(`# Starting configuration for this machine, written by "headgate init".
# It has no effect until you apply it:
#   headgate check -f FILE                       every mistake, with its line
#   headgate plan -f FILE                        what would change
#   headgate apply -f FILE --confirm-within 60s  and then: headgate confirm
# The service (headgate agent) enforces files under /etc/headgate.
`)
	if r.Forbidden {
		b.WriteString("#\n")
		comment(&b, "", "", `It was not run as root, so feature detection is incomplete, and foreign traffic control was not
			checked for.`)
	}
	if len(r.Findings) > 0 {
		b.WriteString("#\n# Findings of \"headgate doctor\" about this machine:\n")
		for _, c := range r.Findings {
			comment(&b, "", "  ", finding(c))
		}
	}
	if len(r.Names(LeftOut)) > 0 {
		b.WriteString("#\n# Devices left out (\"headgate init --dev DEV\" includes one):\n")
		for _, c := range r.Interfaces {
			if c.Decision == LeftOut {
				comment(&b, "", "  ", c.Dev+": "+c.Why)
			}
		}
	}
	separator := ""
	for _, c := range r.Interfaces {
		if c.Decision != LeftOut {
			b.WriteString("\n" + c.document(separator))
			separator = "---\n"
		}
	}
	return b.String()
}

// Summary returns which devices the written file has, and the next steps.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s", r.File)
	for _, d := range []Decision{Written, Commented, LeftOut} {
		if names := r.Names(d); len(names) > 0 {
			fmt.Fprintf(&b, "\n  %s: %s", d, strings.Join(names, ", "))
		}
	}
	b.WriteString("\nNext: ")
	if len(r.Names(Written)) == 0 {
		b.WriteString("set the rate of the link as the file describes, then ")
	}
	fmt.Fprintf(&b, "edit it, and\n  headgate check -f %[1]s\n  headgate plan -f %[1]s", r.File)
	return b.String()
}

func finding(c doctor.Check) string {
	text := fmt.Sprintf("%s: %s: %s", c.State, strings.TrimSuffix(c.Name+": "+c.Found, ": "), c.Meaning)
	if c.Remedy != "" {
		text += ". Remedy: " + c.Remedy
	}
	return text
}

// document returns the document of a device. If the decision is commented, each line is a comment.
func (c *Interface) document(separator string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%skind: Interface\ndev: %s    # %s\n", separator, yamlName(c.Dev), c.About)
	if c.Why != "" && !c.blocked {
		comment(&b, "", "", "Note: "+c.Why)
	}
	for _, f := range c.Findings {
		comment(&b, "", "", finding(f))
	}
	c.direction(&b, "out", c.Out, outMargin, `so that packets queue in the groups, where the guarantees are enforced, and not
		in the device`)
	if c.NoIn != "" {
		comment(&b, "", "", "There is no \"in\": "+c.NoIn+".")
	} else {
		c.direction(&b, "in", c.In, inMargin, `because the ingress queue is at the remote end, and moves here only if this end
			is the bottleneck; with a smaller margin the queue moves back in bursts, and the guarantees are not enforced
			then`)
	}
	if c.Decision == Commented {
		return c.how() + "#\n" + commentedOut(b.String())
	}
	return b.String()
}

// how returns the instructions for a commented-out document.
func (c *Interface) how() string {
	var b strings.Builder
	if c.blocked {
		comment(&b, "", "", c.Why+`. So this document is commented out: remove the "# " before each line after you removed the foreign traffic control.`)
	}
	if c.Speed == 0 {
		comment(&b, "", "", fmt.Sprintf(`The speed of the link of %s is unknown, and a limit above the speed has no effect. So this document
			is commented out until you set the rate: your provider's, or the one that "headgate probe path HOST" measures
			to a host that runs "headgate probe serve":`, c.Dev))
		fmt.Fprintf(&b, "#   headgate init --speed %s=RATE -f FILE\n", c.Dev)
		comment(&b, "", "", `Or replace RATE below with 99% and 95% of the rate, and remove the "# " before each line.`)
	}
	return b.String()
}

// commentedOut returns text with each line as a comment.
func commentedOut(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("# " + line)
	}
	return b.String()
}

func (c *Interface) direction(b *strings.Builder, name string, limit unit.Rate, margin unit.Share, reason string) {
	fmt.Fprintf(b, "%s:\n", name)
	rate := "RATE"
	if limit > 0 {
		rate = limit.String()
	}
	comment(b, "  ", "", fmt.Sprintf("%v of %s, %s (docs/configuration.md, \"Limits\").", unit.Whole-margin, c.gives(name == "out"), reason))
	if name == "out" && limit > 0 && !c.SpeedGiven {
		comment(b, "  ", "", fmt.Sprintf(`If the provider's rate or the path's capacity is lower, this limit has no effect: measure with
			"headgate tune %s --peer HOST".`, c.Dev))
	}
	fmt.Fprintf(b, "  limit: %s\n  groups:\n", rate)
	port, peer := "sport", "dst"
	if name == "in" {
		port, peer = "dport", "src"
	} else {
		comment(b, "    ", "", `A guarantee is the rate that a group gets whenever it has demand. Other groups borrow the unused
			part, and return it at once. A ceiling is the rate that a group never exceeds; the default is the limit.`)
	}
	fmt.Fprintf(b, startingGroups, port, peer)
}

// gives names the rate of the link. If whole is set, it also explains how the rate was derived.
func (c *Interface) gives(whole bool) string {
	switch {
	case c.Speed == 0:
		return "the link's rate"
	case c.SpeedGiven:
		return fmt.Sprintf("the link's rate of %v", c.Speed)
	case !whole:
		return "the link's capacity"
	}
	return fmt.Sprintf("the capacity of a %v link (%v: a frame takes %d bytes on the wire that are not counted)", c.Speed, tune.ReduceBy(c.carriedRate(), 0), ethernetWire)
}

// startingGroups are the groups of a new document: ssh keeps administrative access under load, and
// important is for the user's own rules.
const startingGroups = `    - name: ssh
      guarantee: 5%%
      match: [{proto: tcp, dport: 22}, {proto: tcp, sport: 22}]
    - name: important    # for your own rules, or "headgate assign"
      guarantee: 40%%
      # ceiling: 80%%
      # match:    # one of these is enough
      #   - {proto: tcp, %[1]s: [80, 443]}    # this machine's web server
      #   - {%[2]s: 192.0.2.0/24}               # the remote end, by IPv4
      #   - {%[2]s: "2001:db8::/32"}            # and by IPv6
    - name: rest    # packets that no rule matches
      guarantee: 20%%
      default: true
`

// comment writes text as comment lines of up to 80 characters. If within is not empty, lines after
// the first are indented by two more spaces.
func comment(b *strings.Builder, indent, within, text string) {
	begin := indent + "#" + within
	line := begin
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 80 && line != begin {
			fmt.Fprintln(b, line)
			line = begin
			if within != "" {
				line += "  "
			}
		}
		line += " " + word
	}
	fmt.Fprintln(b, line)
}

// yamlName quotes a name that YAML could read as something other than a string.
func yamlName(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") == "" && s != "null" {
		return s
	}
	return fmt.Sprintf("%q", s)
}
