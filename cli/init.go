package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate/cli/doctor"
	"headgate/shaper"
	"headgate/unit"
)

func initCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a commented configuration for this machine, to start from",
		Long: `Init looks at the devices that carry traffic and at what doctor finds, and
prints a configuration for them with the reason of each value. It changes
nothing. With -f it writes a file that does not exist yet.

Run it as root to have doctor's findings in it.`,
		Example: `  headgate init
  headgate init --dev eth0 -f eth0.yaml
  headgate check -f eth0.yaml && headgate plan -f eth0.yaml`,
		Args: cobra.NoArgs,
	}
	devs := c.Flags().StringArray("dev", nil, "only this device (may be repeated)")
	completeFlag(c, "dev", a.completeDevices())
	file := c.Flags().StringP("file", "f", "-", "write this file, which must not exist, or - for standard output")
	c.RunE = func(*cobra.Command, []string) error {
		devices, err := a.initDevices(*devs)
		if err != nil {
			return err
		}
		text := initText(devices)
		if *file == "-" {
			_, err := fmt.Fprint(a.out, text)
			return err
		}
		if err := writeNew(*file, text); err != nil {
			return err
		}
		a.note("wrote %s. Next: edit it, then\n  headgate check -f %s\n  headgate plan -f %s", *file, *file, *file)
		return nil
	}
	return c
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already, and is not overwritten: write another name, or remove it first", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// initDevice is what a document is written from.
type initDevice struct {
	name, about string
	speed       unit.Rate // 0 if unknown
	findings    []doctor.Check
}

// initDevices are those asked for, or those that carry traffic.
func (a *app) initDevices(asked []string) ([]initDevice, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("the devices cannot be listed: %w", err)
	}
	routed := routedDevices()
	var chosen []netlink.Link
	for _, name := range asked {
		at := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%s: %w: write one that \"ip link\" lists", name, shaper.ErrNoDevice)
		}
		chosen = append(chosen, links[at])
	}
	if len(asked) == 0 {
		chosen = carrying(links, routed)
	}
	if len(chosen) == 0 {
		return nil, errors.New("no device carries traffic to other machines: bring one up, or name one with --dev")
	}
	var names []string
	for _, l := range chosen {
		names = append(names, l.Attrs().Name)
	}
	report, err := a.examine(names, false)
	if err != nil {
		return nil, err
	}
	var out []initDevice
	for _, l := range chosen {
		d := initDevice{name: l.Attrs().Name, about: aboutLink(l, routed[l.Attrs().Index])}
		d.speed, _ = doctor.Speed(l)
		for _, c := range report.Checks {
			if worthSaying(c, d.name) {
				d.findings = append(d.findings, c)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// worthSaying: what limits groups on the device. What is limited for
// experiments only, or said by the values' own comments, is not.
func worthSaying(c doctor.Check, dev string) bool {
	return c.State != doctor.OK && (c.About == dev && c.Name != "speed" || c.About == doctor.Machine && c.Needed)
}

// carrying are devices that lead to other machines and have carried something.
func carrying(links []netlink.Link, routed map[int]bool) (out []netlink.Link) {
	bonds := map[int]bool{}
	for _, l := range links {
		bonds[l.Attrs().Index] = l.Type() == "bond" || l.Type() == "team"
	}
	for _, l := range links {
		a := l.Attrs()
		used := a.Statistics != nil && a.Statistics.RxBytes+a.Statistics.TxBytes > 0
		outward := a.ParentDev != "" || routed[a.Index]
		if used && outward && a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_LOOPBACK == 0 && l.Type() != "ifb" && !bonds[a.MasterIndex] {
			out = append(out, l)
		}
	}
	return out
}

// routedDevices have a default route, by index.
func routedDevices() map[int]bool {
	out := map[int]bool{}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return out // it only decides whether a virtual device is worth a document
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			out[r.LinkIndex] = true
			for _, hop := range r.MultiPath {
				out[hop.LinkIndex] = true
			}
		}
	}
	return out
}

func aboutLink(l netlink.Link, routed bool) string {
	var parts []string
	if l.Type() != "device" {
		parts = append(parts, l.Type())
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	for _, addr := range addrs {
		if err == nil && !addr.IP.IsLinkLocalUnicast() {
			parts = append(parts, addr.IPNet.String())
		}
	}
	if routed {
		parts = append(parts, "default route")
	}
	if len(parts) == 0 {
		parts = append(parts, "no address")
	}
	return strings.Join(parts, ", ")
}

// unknownSpeed is the limit of a link whose speed is not known: one that is too
// high divides nothing, and does no harm.
const unknownSpeed unit.Rate = 10 * unit.Gbit

const (
	outShare = 99 * unit.Whole / 100
	inShare  = 95 * unit.Whole / 100
)

// initText is one document for each device.
func initText(devices []initDevice) string {
	var b strings.Builder
	b.WriteString(`# Bandwidth groups for this machine, to start from ("headgate init" wrote it).
# Nothing is divided until you apply it:
#   headgate check -f FILE                       every mistake, with its line
#   headgate plan -f FILE                        what would change
#   headgate apply -f FILE --confirm-within 60s  and then: headgate confirm
# Files under /etc/headgate are kept in force by the service (headgate agent).
`)
	for i, d := range devices {
		if i > 0 {
			b.WriteString("---\n")
		} else {
			b.WriteString("\n")
		}
		d.document(&b)
	}
	return b.String()
}

func (d initDevice) document(b *strings.Builder) {
	fmt.Fprintf(b, "kind: Interface\ndev: %s    # %s\n", yamlName(d.name), d.about)
	for _, c := range d.findings {
		text := fmt.Sprintf("%s: %s: %s", c.State, strings.TrimSuffix(c.Name+": "+c.Found, ": "), c.Means)
		if c.Remedy != "" {
			text += ". Remedy: " + c.Remedy
		}
		comment(b, "", text)
	}
	d.direction(b, "out", outShare, `so that packets wait in the groups' queues, where the shares are kept, and not
		in the device's own`)
	if slices.ContainsFunc(d.findings, func(c doctor.Check) bool { return c.About == doctor.Machine && c.Name == "IFB" }) {
		comment(b, "", `There is no "in": this kernel has no IFB, on which it is shaped.`)
		return
	}
	d.direction(b, "in", inShare, `because the queue of what comes in is at the other end, and moves here only if
		this end is the slower one; with less room it moves back whenever much comes at once, and nothing is divided
		then`)
}

func (d initDevice) direction(b *strings.Builder, name string, share unit.Share, reason string) {
	fmt.Fprintf(b, "%s:\n", name)
	limit := unknownSpeed
	if d.speed > 0 {
		limit = share.Of(d.speed)
		comment(b, "  ", fmt.Sprintf("%v of the link's %v, %s.", share, d.speed, reason))
	} else {
		comment(b, "  ", fmt.Sprintf(`The speed of the link is not known, and nothing is divided by a limit that it does
			not reach. Write %v of what the link really gives, as promised or better as measured, %s.`, share, reason))
	}
	fmt.Fprintf(b, "  limit: %v\n  groups:\n", limit)
	web := "sport"
	if name == "in" {
		web = "dport"
	} else {
		comment(b, "    ", `A guarantee is what a group gets whenever it wants it. What it leaves idle is lent to the
			others, who give it back at once. A ceiling is the most it ever gets; left out, it is the limit.`)
	}
	fmt.Fprintf(b, `    - name: ssh
      guarantee: 5%%
      match: [{proto: tcp, dport: 22}, {proto: tcp, sport: 22}]
    # - name: web
    #   guarantee: 40%%
    #   ceiling: 80%%
    #   match: [{proto: tcp, %s: [80, 443]}]
    - name: rest    # what no rule takes
      guarantee: 20%%
      default: true
`, web)
}

// comment writes text in lines of up to 80 characters.
func comment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 80 {
			fmt.Fprintln(b, line)
			line = indent + "#"
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
