package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

func probeServeCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a probe server, to which other hosts measure",
		Long: `Serve runs the server for "headgate probe" on TCP and UDP port 4950 (--listen), until it is
interrupted. One client measures at a time, other clients wait.

The server sends only to addresses that proved to receive its packets, so not to third
parties. --max-bytes, --max-rate (over any second) and --max-time limit each client.

Clients authenticate with a shared key or with certificates. Create a key with:
  headgate probe key ` + keyFile + `
With --open the server accepts clients without authentication.

With --peer the server also measures to the named servers, and no others, when a client
requests it (as "headgate probe mesh" does). It authenticates there with its own key or
certificate, and observes the limits above.

Run it as root for better accuracy: its thread then keeps its processor, and its buffers
hold whole trains.`,
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
	open := c.Flags().Bool("open", false, "accept clients without authentication")
	c.Flags().Var(&bytes, "max-bytes", "send at most this much to a client")
	c.Flags().Var(&rate, "max-rate", "send at most at this rate, over any second")
	c.Flags().DurationVar(&caps.Time, "max-time", caps.Time, "end a session after this")
	peers := c.Flags().StringArray("peer", nil, "a HOST[:PORT] to which this server measures at a client's request (may be repeated)")
	peersFile := c.Flags().String("peers-file", "", "file with peers, one per line")
	level := logLevel(slog.LevelInfo)
	c.Flags().Var(&level, "log-level", "log messages of at least this level")
	completeFlag(c, "log-level", oneOf("debug", "info", "warn", "error"))
	c.MarkFlagsMutuallyExclusive("open", "key-file")
	c.MarkFlagsMutuallyExclusive("open", "cert")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if caps.Time < time.Second || bytes == 0 || rate == 0 {
			return usageError{errors.New("--max-bytes and --max-rate must be more than 0, and --max-time at least 1s"), c.CommandPath()}
		}
		caps.Bytes, caps.Rate = unit.Bytes(bytes), unit.Rate(rate)
		allowed, err := serverPeers(*peers, *peersFile)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *open && len(allowed) > 0 {
			return usageError{errors.New("--open and --peer cannot be used together: any client could make this server send to its peers"), c.CommandPath()}
		}
		who := peerauth.Credentials{}
		if !*open {
			var err error
			if who, err = auth.client(); err != nil {
				return err
			}
			if who.Key == nil && who.Certificate == nil {
				return usageError{fmt.Errorf("missing key or certificate: create a key with \"headgate probe key %s\" and copy it to the clients, select another file with --key-file, or use --open", keyFile), c.CommandPath()}
			}
		}
		s := &session.Server{Auth: who, Caps: caps, Peers: allowed}
		s.Measure = measure.ForClients(s)
		return a.probeServe(*listen, s, slog.Level(level))
	}
	return c
}

// serverPeers returns the peers of flags and of a file.
func serverPeers(named []string, file string) (out []probe.Address, err error) {
	for _, name := range named {
		peer, err := probe.ParseAddress(name)
		if err != nil {
			return nil, fmt.Errorf("--peer: %w", err)
		}
		out = append(out, peer)
	}
	if file == "" {
		return out, nil
	}
	listed, err := session.ReadPeers(file)
	return append(out, listed...), err
}

func (a *app) probeServe(listen string, s *session.Server, level slog.Level) error {
	ctx, stop := interrupted()
	defer stop()
	s.Log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTimeInJournal}))
	if err := s.Listen(ctx, listen); err != nil {
		return err
	}
	s.Log.Info("listening for clients", "address", s.Addr(), "bytes", s.Caps.Bytes, "rate", s.Caps.Rate, "time", s.Caps.Time, "peers", len(s.Peers))
	return s.Serve(ctx)
}
