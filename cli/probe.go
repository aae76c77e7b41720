package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/shaper"
)

func probeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "probe",
		Short: "Measure the capacity and limits of a path",
		Long: `Probe measures the path to a host that runs "headgate probe serve", in both
directions: the capacity of the slowest link, the token rate and bucket size of a
limiter, and more, each with a confidence interval. An estimate can also be "cannot
tell". docs/probe.md explains the results.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(probeServeCommand(a), keyCommand(a, "probe", "host"))
	for _, m := range measurements {
		c.AddCommand(measureCommand(a, m))
	}
	c.AddCommand(probeMeshCommand(a), probeCompareCommand(a), probeReplayCommand(a), probeScheduleCommand(a), probeResultsCommand(a), probeChildCommand(a))
	return c
}

// measurement is a command that measures a path.
type measurement struct {
	name, short, long string
}

var measurements = []measurement{
	{"path", "Measure everything about a path",
		"Path measures the capacity, the token rate and bucket size (the rate of a long\ntransfer, and the size of a burst above that rate), the limiter type, and the available\nbandwidth, in the order that sends the fewest bytes."},
	{"capacity", "Measure the capacity of a path",
		"Capacity measures the rate of the slowest link on the path. A short burst gets this\nrate, even if a shaper limits a long transfer to less."},
	{"tokenrate", "Measure the token rate and bucket size of a path's limiter",
		"Tokenrate measures the rate of a long transfer, and the bytes that pass before the\nlimiter takes effect. It measures the capacity first, unless --capacity is given."},
	{"limiter", "Detect the limiter type of a path",
		"Limiter distinguishes a continuous token bucket, a token bucket that is filled\nperiodically (as Xen's), the scheduling of virtual machines, a policer, a sender with\na slow processor, and no limiter."},
	{"available", "Measure the available bandwidth of a path",
		"Available measures the capacity that cross traffic leaves to one more transfer."},
	{"credits", "Measure the burst credits of a path",
		"Credits finds a limiter whose bucket takes seconds or minutes to empty, as that of a\ncloud's burst instance: the burst rate, the baseline rate of a transfer that has used the\ncredits, and the bytes in between. It empties the bucket at 7/8 of the capacity, which\nleaves little to others meanwhile. The size is a lower bound until it was found twice.\nFor a bucket of gigabytes raise --bytes and --time, and --max-bytes, --max-rate and\n--max-time of the server."},
}

// probeFlags are the flags of a measurement: connection, budget and output.
type probeFlags struct {
	auth       authFlags
	network    func() string
	direction  string
	bytes      bytesFlag
	time       time.Duration
	capacity   rateFlag
	method     string
	log, plots string
	watch      time.Duration // only of "probe limiter"
	ticks      string        // only of "probe available"
	output     *format
}

func measureCommand(a *app, m measurement) *cobra.Command {
	c := &cobra.Command{
		Use:   m.name + " HOST[:PORT]",
		Short: m.short,
		Long: m.long + `

Rates are layer 2: IP packets with 14 bytes of Ethernet header each. The interval after
each value is the 90 % confidence interval.

With --server a host of a service measures, with its own /etc/headgate/probe.key.`,
		Args: cobra.ExactArgs(1),
	}
	f := probeFlags{bytes: bytesFlag(path.Budget), time: 30 * time.Second}
	bytes := "2MB"
	if m.name == "credits" {
		f.bytes, f.time, bytes = bytesFlag(schedule.CreditsBytes), schedule.CreditsTime, "2GB"
	}
	c.Example = fmt.Sprintf("  headgate probe %s server.example.org\n  headgate probe %[1]s 10.0.0.2:4950 --direction out --bytes %[2]s --log probe.log -o json\n  headgate probe %[1]s 10.0.0.2 --server default --host web1", m.name, bytes)
	f.add(c)
	if m.name == "limiter" {
		c.Flags().DurationVar(&f.watch, "watch", 0, "measure repeatedly for this time, to find changes and periodic extra tokens (65s covers three periods of 20 s); the default of --bytes is then 100MB")
	}
	if m.name == "available" {
		c.Flags().StringVar(&f.ticks, "ticks", "", "use packets of this second server as the clock (PacketTick of the estimation seed, inbound direction only); the default of --bytes is then 50MB")
	}
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if at.isSet() {
			if err := at.rejectFlags(c, localOnlyFlags...); err != nil {
				return err
			}
			return a.probeRemote(at, m.name, args[0], *f.output)
		}
		auth, err := f.auth.client()
		if err != nil {
			return err
		}
		if f.bytes == 0 || f.time <= 0 {
			return usageError{errors.New("--bytes and --time must be more than 0"), c.CommandPath()}
		}
		if f.watch > 0 {
			if !c.Flags().Changed("bytes") {
				f.bytes = bytesFlag(measure.WatchBudget)
			}
		}
		if f.ticks != "" {
			if f.direction == "out" {
				return usageError{errors.New("--ticks measures only the inbound direction: remove --direction out"), c.CommandPath()}
			}
			if !c.Flags().Changed("bytes") {
				f.bytes = bytesFlag(measure.TicksBudget)
			}
		}
		return a.measure(m.name, args[0], f, auth)
	}
	return c
}

func (f *probeFlags) add(c *cobra.Command) {
	f.auth.add(c)
	f.direction = "both"
	f.network = networkFlags(c)
	c.Flags().Var(enumFlag{&f.direction, []string{"both", "out", "in"}}, "direction", "direction to measure: out is to HOST, in is from HOST")
	completeFlag(c, "direction", oneOf("both", "out", "in"))
	methodFlag(c, &f.method, "ours, or the methods of the estimation seed")
	c.Flags().Var(&f.bytes, "bytes", "send at most this much in each direction")
	c.Flags().DurationVar(&f.time, "time", f.time, "measure at most this long in each direction")
	c.Flags().Var(&f.capacity, "capacity", "use this capacity instead of measuring it")
	c.Flags().StringVar(&f.log, "log", "", "write the samples to a file, for \"headgate probe replay\"")
	c.Flags().StringVar(&f.plots, "plots", "", plotsHelp)
	f.output = outputFlag(c)
}

const plotsHelp = "write plots of the samples into this folder"

// directions returns the directions to measure.
func (f *probeFlags) directions() []probe.Direction {
	switch f.direction {
	case "out":
		return []probe.Direction{probe.Out}
	case "in":
		return []probe.Direction{probe.In}
	}
	return probe.Directions[:]
}

// keyFile is the default file of the key that client and server share.
const keyFile = "/etc/headgate/probe.key"

// authFlags are the flags for the authentication between client and server.
type authFlags struct{ key, cert, certKey, authority string }

func (f *authFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "key-file", "", "file with the shared key (default "+keyFile+", if it exists)")
	c.Flags().StringVar(&f.cert, "cert", "", "PEM file with this host's certificate, instead of a key")
	c.Flags().StringVar(&f.certKey, "cert-key", "", "PEM file with the certificate's private key")
	c.Flags().StringVar(&f.authority, "ca", "", "PEM file with the certificate authority of the peer's certificate")
	c.MarkFlagsRequiredTogether("cert", "cert-key", "ca")
	c.MarkFlagsMutuallyExclusive("key-file", "cert")
}

// client returns the credentials that the flags select. They are empty without flags and
// without keyFile: then only a server with --open accepts the client.
func (f *authFlags) client() (peerauth.Credentials, error) {
	if f.cert != "" {
		return peerauth.ReadCertificates(f.cert, f.certKey, f.authority)
	}
	file := f.key
	if file == "" {
		file = keyFile
	}
	key, err := peerauth.ReadKey(file)
	if f.key == "" && errors.Is(err, fs.ErrNotExist) {
		return peerauth.Credentials{}, nil
	}
	if errors.Is(err, os.ErrPermission) {
		return peerauth.Credentials{}, shaper.WithPermission(err)
	}
	return peerauth.Credentials{Key: key}, err
}
