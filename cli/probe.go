package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/unit"
)

func probeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "probe",
		Short: "Measure what a path really gives",
		Long: `Probe measures the path to a host on which "headgate probe serve" runs, in both
directions: the capacity of its narrow link, the rate and the bucket of what limits
it, and more, each with how sure it is. "Cannot tell" is an answer. docs/probe.md says
how to read one.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(probeServeCommand(a))
	for _, m := range measurements {
		c.AddCommand(measureCommand(a, m))
	}
	c.AddCommand(probeMeshCommand(a), probeCompareCommand(a), probeReplayCommand(a), probeScheduleCommand(a), probeResultsCommand(a), probeOnceCommand(a))
	return c
}

// measurement is a command that measures a path.
type measurement struct {
	name, short, long string
	wanted            path.Wanted
}

var measurements = []measurement{
	{"path", "All of a path in one answer",
		"Path measures the capacity, then the token rate and the bucket (what a long transfer\ngets, and what a short one gets at once), the kind of limiter, and the bandwidth that\nothers leave, in the order that spends least.", path.Everything},
	{"capacity", "The capacity of the narrow link",
		"Capacity is the rate of the slowest link on the path: what a short burst gets, also\nwhere a shaper gives less to a long one.", path.Wanted{Capacity: true}},
	{"tokenrate", "The token rate and the bucket of what limits the path",
		"Tokenrate finds what a long transfer gets, and how many bytes pass before that.\nIt measures the capacity first, unless --capacity tells it.", path.Wanted{TokenRate: true}},
	{"limiter", "The kind of what limits the path",
		"Limiter tells a token bucket from one that fills now and then (as Xen's), from virtual\nmachines that are scheduled, from a policer, from a sender whose processor is too\nslow, and from none.", path.Wanted{Limiter: true}},
	{"available", "The bandwidth that others leave",
		"Available measures what one more transfer would get beside what is there.", path.Wanted{Available: true}},
}

// probeFlags are how to reach a server, and how much may be spent.
type probeFlags struct {
	auth       authFlags
	network    func() string
	direction  string
	bytes      bytesFlag
	time       time.Duration
	capacity   rateFlag
	method     string
	log, plots string
	watch      time.Duration // of the limiter alone
	ticks      string        // of the available bandwidth alone
	output     *format
}

func measureCommand(a *app, m measurement) *cobra.Command {
	c := &cobra.Command{
		Use:   m.name + " HOST[:PORT]",
		Short: m.short,
		Long: m.long + `

Rates are those of layer 2: IP packets and 14 bytes of Ethernet header each. Behind
each is the interval that has the truth in 90 of 100 measurements.

With --server a host of a service measures, with its own /etc/headgate/probe.key.`,
		Example: fmt.Sprintf("  headgate probe %s server.example.org\n  headgate probe %[1]s 10.0.0.2:4950 --direction out --bytes 2MB --log probe.log -o json\n  headgate probe %[1]s 10.0.0.2 --server default --host web1", m.name),
		Args:    cobra.ExactArgs(1),
	}
	var f probeFlags
	f.add(c)
	if m.wanted == (path.Wanted{Limiter: true}) {
		c.Flags().DurationVar(&f.watch, "watch", 0, "look again and again for so long (65s: three gifts of 20 s each): tokens given besides, and changes; --bytes is then 100MB without it")
	}
	if m.wanted == (path.Wanted{Available: true}) {
		c.Flags().StringVar(&f.ticks, "ticks", "", "another server, whose packets are the clock: PacketTick of the estimation seed, of what comes in; --bytes is then 50MB without it")
	}
	at := thereFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if at.asked() {
			if err := at.nothing(c, localProbeFlags...); err != nil {
				return err
			}
			return a.probeThere(at, m.name, args[0], *f.output)
		}
		auth, err := f.auth.client()
		if err != nil {
			return err
		}
		if f.bytes == 0 || f.time <= 0 {
			return usageError{errors.New("a measurement needs bytes and time: write more than 0"), c.CommandPath()}
		}
		if f.watch > 0 {
			if !c.Flags().Changed("bytes") {
				f.bytes = bytesFlag(watchBudget)
			}
			return a.probeWatch(args[0], f, auth)
		}
		if f.ticks != "" {
			if f.direction == "out" {
				return usageError{errors.New("ticks time what comes in: leave --direction out away"), c.CommandPath()}
			}
			if !c.Flags().Changed("bytes") {
				f.bytes = bytesFlag(ticksBudget)
			}
			return a.probeTicks(args[0], f, auth)
		}
		return a.measure(args[0], m, f, auth)
	}
	return c
}

func (f *probeFlags) add(c *cobra.Command) {
	f.auth.add(c)
	f.bytes = bytesFlag(path.Budget)
	f.direction = "both"
	f.network = networkFlags(c)
	c.Flags().Var(oneWord{&f.direction, []string{"both", "out", "in"}}, "direction", "which way: out is to HOST, in from there")
	completeFlag(c, "direction", oneOf("both", "out", "in"))
	methodFlag(c, &f.method, "ours, or the ones of the estimation seed")
	c.Flags().Var(&f.bytes, "bytes", "send no more than this in each direction")
	c.Flags().DurationVar(&f.time, "time", 30*time.Second, "take no longer than this in each direction")
	c.Flags().Var(&f.capacity, "capacity", "the capacity, if it is known: it is not measured then")
	c.Flags().StringVar(&f.log, "log", "", "write the samples to a file, for \"headgate probe replay\"")
	c.Flags().StringVar(&f.plots, "plots", "", plotsHelp)
	f.output = outputFlag(c)
}

const plotsHelp = "draw what the answers were read from into a folder"

// directions to be measured.
func (f *probeFlags) directions() []probe.Direction {
	switch f.direction {
	case "out":
		return []probe.Direction{probe.Out}
	case "in":
		return []probe.Direction{probe.In}
	}
	return probe.Directions[:]
}

func (f *probeFlags) methodFor(m measurement) path.Method {
	return path.Method{Wanted: m.wanted, Known: unit.Rate(f.capacity), Seed: f.method == "seed", Budget: unit.Bytes(f.bytes)}
}

// keyFile is where both ends look for a shared key that no flag names.
const keyFile = "/etc/headgate/probe.key"

// authFlags are how the two ends know each other.
type authFlags struct{ key, cert, certKey, authority string }

func (f *authFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "key-file", "", "file with the key that both ends share (default "+keyFile+", if it is there)")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with this end's certificate, in place of a key")
	c.Flags().StringVar(&f.certKey, "cert-key", "", "PEM file with the certificate's private key")
	c.Flags().StringVar(&f.authority, "ca", "", "PEM file with the authority that signed the other end's certificate")
	c.MarkFlagsRequiredTogether("cert", "cert-key", "ca")
	c.MarkFlagsMutuallyExclusive("key-file", "cert")
}

// client is what the flags say; without any and without the usual file the server
// must be open to all.
func (f *authFlags) client() (session.Auth, error) {
	if f.cert != "" {
		return session.ReadCertificates(f.cert, f.certKey, f.authority)
	}
	file := f.key
	if file == "" {
		file = keyFile
	}
	key, err := session.ReadKey(file)
	if f.key == "" && errors.Is(err, fs.ErrNotExist) {
		return session.Auth{}, nil
	}
	if errors.Is(err, os.ErrPermission) {
		return session.Auth{}, needsRights(err)
	}
	return session.Auth{Key: key}, err
}
