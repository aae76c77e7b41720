package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate/probe"
	"headgate/probe/session"
	"headgate/unit"
)

func probeServeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Let other hosts measure the path to this one",
		Long: `Serve answers "headgate probe" on TCP and UDP port 4950 (--listen), until it is told to
stop. One client measures at a time, others wait.

It sends only to who has shown that packets arrive there, so to no third party, and no
more than --max-bytes, --max-rate (over any second) and --max-time allow each client.

Who may measure is said by a key that both ends share, or by certificates; write
one with:  head -c 32 /dev/urandom | base64 > ` + keyFile + `
With --open anybody may.

With --peer it also measures to other servers, those that are named and no others,
when a client asks for it ("headgate probe mesh" does). It is a client there, with its
own key or certificate, and sends no more than the bounds above.

As root it is more exact: its thread keeps its processor, and its buffers hold whole
trains.`,
		Example: `  headgate probe serve
  headgate probe serve --listen 10.0.0.2:4950 --key-file probe.key --max-bytes 50MB
  headgate probe serve --cert server.pem --cert-key server.key --ca ca.pem
  headgate probe serve --peer ams.example.org --peer 192.0.2.7:5000`,
		Args: cobra.NoArgs,
	}
	var auth authFlags
	auth.add(c)
	caps := session.Default
	rate, bytes := rateFlag(caps.Rate), bytesFlag(caps.Bytes)
	listen := c.Flags().String("listen", net.JoinHostPort("", strconv.Itoa(probe.Port)), "address and port, for TCP and UDP")
	open := c.Flags().Bool("open", false, "let anybody measure")
	c.Flags().Var(&bytes, "max-bytes", "send a client no more than this")
	c.Flags().Var(&rate, "max-rate", "send no faster than this, over any second")
	c.Flags().DurationVar(&caps.Time, "max-time", caps.Time, "end a session after this")
	peers := c.Flags().StringArray("peer", nil, "a HOST[:PORT] to which clients may have this server measure (may be repeated)")
	peersFile := c.Flags().String("peers-file", "", "file with such peers, one a line")
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "log what is at least this important")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	c.MarkFlagsMutuallyExclusive("open", "key-file")
	c.MarkFlagsMutuallyExclusive("open", "cert")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if caps.Time < time.Second || bytes == 0 || rate == 0 {
			return usageError{errors.New("a session needs bytes, a rate and time: write more than 0, and at least 1s"), c.CommandPath()}
		}
		caps.Bytes, caps.Rate = unit.Bytes(bytes), unit.Rate(rate)
		allowed, err := readPeers(*peers, *peersFile)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *open && len(allowed) > 0 {
			return usageError{errors.New("--open and --peer do not go together: anybody could have this server send to its peers"), c.CommandPath()}
		}
		who := session.Auth{}
		if !*open {
			var err error
			if who, err = auth.client(); err != nil {
				return err
			}
			if who.Key == nil && who.Certificate == nil {
				return usageError{fmt.Errorf("nothing says who may measure: write a key with \"head -c 32 /dev/urandom | base64 > %s\" and copy it to the clients, name another with --key-file, or write --open", keyFile), c.CommandPath()}
			}
		}
		s := &session.Server{Auth: who, Caps: caps, Peers: allowed}
		s.Measure = measureFor(s)
		return a.probeServe(*listen, s, slog.Level(level))
	}
	return c
}

func (a *app) probeServe(listen string, s *session.Server, level slog.Level) error {
	ctx, stop := interrupted()
	defer stop()
	s.Log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTime}))
	if err := s.Listen(ctx, listen); err != nil {
		return err
	}
	s.Log.Info("clients may measure", "address", s.Addr(), "bytes", s.Caps.Bytes, "rate", s.Caps.Rate, "time", s.Caps.Time, "peers", len(s.Peers))
	return s.Serve(ctx)
}
