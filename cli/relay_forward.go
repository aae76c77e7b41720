package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/host"
)

func relayForwardCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "forward LISTEN HOST:PORT --exit ADDRESS --key-file FILE",
		Short: "Forward a local port to a destination over an exit",
		Long: `Forward listens on LISTEN, and carries each connection over the exit to HOST:PORT. It needs no
configuration file. LISTEN is IP:PORT, or PORT for 127.0.0.1. Names are resolved once, when
the command starts. The exit must allow the destination. It ends on SIGTERM, and with it the
connections that it carries. "headgate relay status --agent forward-8022" prints the status of
the one that listens on port 8022 of 127.0.0.1; with another address, the name has it too.

An exit with several addresses that different paths lead to: repeat --exit.`,
		Example: `  headgate relay forward 8022 10.2.0.5:22 --exit 192.0.2.2:8424 --key-file /etc/headgate/relay.key
  headgate relay forward 8022 10.2.0.5:22 --exit 192.0.2.2:8424 --exit 198.51.100.2:8424 --key-file relay.key`,
		Args: cobra.ExactArgs(2),
	}
	var f forwarding
	var keyFile string
	c.Flags().StringArrayVar(&f.exits, "exit", nil, "the `ADDRESS` of the exit, HOST:PORT; repeat it for each further address of the same exit")
	c.Flags().StringVar(&keyFile, "key-file", "", "the `FILE` with the key that all relay agents share")
	c.Flags().IntVar(&f.streams, "streams", 0, "the number of streams of each path; 0 chooses as many as help")
	c.Flags().BoolVar(&f.encrypt, "encrypt", true, "encrypt the streams; the exit must have the same setting")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(f.exits) == 0 || keyFile == "" {
			return usageError{errors.New("--exit or --key-file is missing: set --exit to the address of the exit and --key-file to the file with the key"), c.CommandPath()}
		}
		ctx, stop := signal.NotifyContext(c.Context(), unix.SIGTERM, os.Interrupt)
		defer stop()
		p, err := f.policy(ctx, args[0], args[1])
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		p.KeyFile = keyFile
		auth, err := host.ReadAuth(p)
		if err != nil {
			return err
		}
		return host.Run(ctx, p, auth, slog.Default(), func() {
			a.note("forwarding %s to %s over %s", p.Forwards[0].Listen, p.Forwards[0].To, p.Exits[0].Address)
		})
	}
	return c
}

// forwarding is the flags of relay forward.
type forwarding struct {
	exits   []string
	streams int
	encrypt bool
}

// policy returns the policy of an agent that forwards one port.
func (f forwarding) policy(ctx context.Context, listen, to string) (p relay.Policy, err error) {
	if listen, err = config.LoopbackAddress(listen); err != nil {
		return p, err
	}
	at, err := lookUp(ctx, to)
	if err != nil {
		return p, err
	}
	if f.streams < 0 || f.streams > config.MaxStreams {
		return p, fmt.Errorf("--streams %d is out of range: set 0 to %d", f.streams, config.MaxStreams)
	}
	exit := relay.Exit{Destinations: []netip.Prefix{netip.PrefixFrom(at.Addr(), at.Addr().BitLen())}}
	for n, one := range f.exits {
		address, err := lookUp(ctx, one)
		if err != nil {
			return p, fmt.Errorf("--exit: %w", err)
		}
		exit.Paths = append(exit.Paths, relay.Path{Name: strconv.Itoa(n + 1), Address: address, Streams: f.streams})
	}
	exit.Address = exit.Paths[0].Address
	return relay.Policy{
		Name: "forward-" + strings.TrimPrefix(listen, "127.0.0.1:"), Plain: !f.encrypt, Exits: []relay.Exit{exit},
		Forwards: []relay.Forward{{Listen: listen, To: at}},
	}, nil
}

// lookUp returns the first address of HOST:PORT.
func lookUp(ctx context.Context, s string) (netip.AddrPort, error) {
	name, text, err := net.SplitHostPort(s)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || name == "" || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is not HOST:PORT: write for example 192.0.2.1:80", s)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot resolve %s: %w", name, err)
	}
	return netip.AddrPortFrom(all[0].Unmap(), uint16(port)), nil
}
