package cli

import (
	"fmt"
	"strings"

	"headgate/cli/doctor"
	"headgate/probe/tune"
	"headgate/unit"
)

// What is kept free of a link, ours (docs/configuration.md, "Limits").
const (
	outMargin = unit.Whole / 100
	inMargin  = unit.Whole / 20
)

// A frame as the kernel counts it has a header of 14 bytes; on the wire an Ethernet also has 24 of
// checksum, preamble and gap (IEEE 802.3, clauses 3 and 4.4.2).
const ethernetHeader, ethernetWire = 14, 24

// carried is how much of a link's speed full frames are, as the kernel counts them. What a user
// says that a link gives was promised or measured, and is that already.
func (c *initChoice) carried() float64 {
	if c.Given {
		return float64(c.Speed)
	}
	frame := float64(c.mtu + ethernetHeader)
	return float64(c.Speed) * frame / (frame + ethernetWire)
}

// limit says what the link is limited to; nothing if its speed is not known.
func (c *initChoice) limit() {
	if c.Speed == 0 {
		return
	}
	c.Out = tune.Below(c.carried(), outMargin)
	if c.NoIn == "" {
		c.In = tune.Below(c.carried(), inMargin)
	}
}

// text is the configuration.
func (r *initReport) text() string {
	var b strings.Builder
	b.WriteString(`# Bandwidth groups for this machine, to start from ("headgate init" wrote it).
# Nothing is divided until you apply it:
#   headgate check -f FILE                       every mistake, with its line
#   headgate plan -f FILE                        what would change
#   headgate apply -f FILE --confirm-within 60s  and then: headgate confirm
# Files under /etc/headgate are kept in force by the service (headgate agent).
`)
	if r.Forbidden {
		b.WriteString("#\n")
		comment(&b, "", "", `It was not run as root. So whether this machine can do it, and whether others' traffic control is in the
			way, is not known.`)
	}
	if len(r.Machine) > 0 {
		b.WriteString("#\n# Of this machine \"headgate doctor\" says:\n")
		for _, c := range r.Machine {
			comment(&b, "", "  ", finding(c))
		}
	}
	if len(r.names(leftOut)) > 0 {
		b.WriteString("#\n# Left out; \"headgate init --dev DEV\" writes a document for one all the same:\n")
		for _, c := range r.Interfaces {
			if c.Decision == leftOut {
				comment(&b, "", "  ", c.Dev+": "+c.Why)
			}
		}
	}
	separator := ""
	for _, c := range r.Interfaces {
		if c.Decision != leftOut {
			b.WriteString("\n" + c.document(separator))
			separator = "---\n"
		}
	}
	return b.String()
}

func finding(c doctor.Check) string {
	text := fmt.Sprintf("%s: %s: %s", c.State, strings.TrimSuffix(c.Name+": "+c.Found, ": "), c.Means)
	if c.Remedy != "" {
		text += ". Remedy: " + c.Remedy
	}
	return text
}

// document is a device's, each line a comment if it is not to be applied yet.
func (c *initChoice) document(separator string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%skind: Interface\ndev: %s    # %s\n", separator, yamlName(c.Dev), c.About)
	if c.Why != "" && !c.blocked {
		comment(&b, "", "", "Note: "+c.Why)
	}
	for _, f := range c.Findings {
		comment(&b, "", "", finding(f))
	}
	c.direction(&b, "out", c.Out, outMargin, `so that packets wait in the groups' queues, where the shares are kept, and not
		in the device's own`)
	if c.NoIn != "" {
		comment(&b, "", "", "There is no \"in\": "+c.NoIn+".")
	} else {
		c.direction(&b, "in", c.In, inMargin, `because the queue of what comes in is at the other end, and moves here only if
			this end is the slower one; with less room it moves back whenever much comes at once, and nothing is divided
			then`)
	}
	if c.Decision == commented {
		return c.how() + "#\n" + commentedOut(b.String())
	}
	return b.String()
}

// how says what makes a document of the comment that follows.
func (c *initChoice) how() string {
	var b strings.Builder
	if c.blocked {
		comment(&b, "", "", c.Why+`. So this is a comment: take the "# " before each line away when nothing is in the way.`)
	}
	if c.Speed == 0 {
		comment(&b, "", "", fmt.Sprintf(`How much the link of %s gives is not known to this machine, and a limit that is above it divides
			nothing. So this is a comment until you say it, as your provider promises or as "headgate probe path HOST" measures,
			to a host that runs "headgate probe serve":`, c.Dev))
		fmt.Fprintf(&b, "#   headgate init --speed %s=RATE -f FILE\n", c.Dev)
		comment(&b, "", "", `Or write 99% and 95% of it for RATE below, and take the "# " before each line away.`)
	}
	return b.String()
}

// commentedOut is text of which each line is a comment.
func commentedOut(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("# " + line)
	}
	return b.String()
}

func (c *initChoice) direction(b *strings.Builder, name string, limit unit.Rate, margin unit.Share, reason string) {
	fmt.Fprintf(b, "%s:\n", name)
	rate := "RATE"
	if limit > 0 {
		rate = limit.String()
	}
	comment(b, "  ", "", fmt.Sprintf("%v of %s, %s (docs/configuration.md, \"Limits\").", unit.Whole-margin, c.gives(name == "out"), reason))
	if name == "out" && limit > 0 && !c.Given {
		comment(b, "  ", "", fmt.Sprintf(`If your provider or the path gives less, this divides nothing, and does no harm: "headgate tune %s --peer HOST"
			measures it.`, c.Dev))
	}
	fmt.Fprintf(b, "  limit: %s\n  groups:\n", rate)
	port, peer := "sport", "dst"
	if name == "in" {
		port, peer = "dport", "src"
	} else {
		comment(b, "    ", "", `A guarantee is what a group gets whenever it wants it. What it leaves idle is lent to the
			others, who give it back at once. A ceiling is the most it ever gets; left out, it is the limit.`)
	}
	fmt.Fprintf(b, initGroups, port, peer)
}

// gives is what the link gives, and the first time how that is known.
func (c *initChoice) gives(whole bool) string {
	switch {
	case c.Speed == 0:
		return "what the link gives"
	case c.Given:
		return fmt.Sprintf("the %v that the link gives", c.Speed)
	case !whole:
		return "what the link carries"
	}
	return fmt.Sprintf("what a link of %v carries (%v: a frame takes %d bytes more on the wire than are counted)", c.Speed, tune.Below(c.carried(), 0), ethernetWire)
}

// initGroups lets administrators in, whatever else goes on, and has room for what matters.
const initGroups = `    - name: ssh
      guarantee: 5%%
      match: [{proto: tcp, dport: 22}, {proto: tcp, sport: 22}]
    - name: important    # empty until a rule, or "headgate assign", fills it
      guarantee: 40%%
      # ceiling: 80%%
      # match:    # one of these is enough
      #   - {proto: tcp, %[1]s: [80, 443]}    # this machine's web server
      #   - {%[2]s: 192.0.2.0/24}               # the other end, by IPv4
      #   - {%[2]s: "2001:db8::/32"}            # and by IPv6
    - name: rest    # what no rule takes
      guarantee: 20%%
      default: true
`

// comment writes text in lines of up to 80 characters, those after the first a little further in
// if the text is further in itself.
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

// yamlName quotes what YAML might read as something else than a word.
func yamlName(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") == "" && s != "null" {
		return s
	}
	return fmt.Sprintf("%q", s)
}
