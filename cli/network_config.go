package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/summary"
)

func networkApplyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Set the configuration of the network: a document of kind: Network",
		Long: `Apply stores the document of kind: Network at the service, in place of the one before, and prints
the lines that are added (+) and removed (-). All controllers follow it at once: they listen where it
says, and disconnect switches that it does not accept. "headgate check -f FILE" validates a file
without the service.`,
		Example: `  headgate network apply -f network.yaml --dry-run
  headgate network apply -f network.yaml`,
		Args: cobra.NoArgs,
	}
	files, server, dry, output := fileFlag(c), serverFlag(c), dryRunFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		want, err := onlyNetwork(*files, a.in) // its mistakes need no service
		if err != nil {
			return err
		}
		a.notes(want.Notes)
		client, err := service(*server)
		if err != nil {
			return err
		}
		q := request{ctx: c.Context(), client: client, dry: dry}
		before, tag, err := api.DecodeWithETag[api.NetworkConfig](getNetworkConfig(q))
		if err != nil {
			return err
		}
		after, err := api.Decode[api.NetworkConfig](client.PutNetworkConfig(q.ctx, &api.PutNetworkConfigParams{IfMatch: tag, DryRun: dry},
			api.NetworkConfig{Text: string(config.FormatNetwork(want.Config))}))
		if err != nil {
			return err
		}
		made, what := changeOf(before.Text, after.Text), "changed"
		switch {
		case tag == nil:
			what = "created"
		case after == before:
			what = "unchanged"
		}
		return a.print(*output, made, func(w io.Writer) error {
			made.write(w)
			if what == "unchanged" {
				_, err := fmt.Fprintln(w, "network: unchanged")
				return err
			}
			return outcome(q, "network", what)(w)
		})
	}
	return c
}

// onlyNetwork reads the document of kind: Network in some files.
func onlyNetwork(files []string, stdin io.Reader) (config.Network, error) {
	if len(files) == 0 {
		return config.Network{}, usageError{errors.New("configuration is missing: set -f to a file with a document of kind: Network"), "headgate network apply"}
	}
	set, err := read(files, stdin)
	if err != nil {
		return config.Network{}, err
	}
	return only("Network", files, set.Networks, func(n config.Network) (string, int) { return n.File, n.Line })
}

func getNetworkConfig(q request) (*http.Response, error) { return q.client.GetNetworkConfig(q.ctx) }

// networkChange is a change of the configuration of a network, by the lines of the document.
type networkChange struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

// changeOf compares two documents of config.FormatNetwork, which have one item in a line.
func changeOf(before, after string) networkChange {
	without := func(text, other string) []string {
		lines, others := strings.Split(strings.TrimSpace(text), "\n"), strings.Split(strings.TrimSpace(other), "\n")
		return slices.DeleteFunc(lines, func(l string) bool { return l == "" || slices.Contains(others, l) })
	}
	return networkChange{Added: without(after, before), Removed: without(before, after)}
}

func (c networkChange) write(w io.Writer) {
	for _, l := range c.Removed {
		fmt.Fprintln(w, "- "+strings.TrimPrefix(l, "  - "))
	}
	for _, l := range c.Added {
		fmt.Fprintln(w, "+ "+strings.TrimPrefix(l, "  - "))
	}
}

func networkConfigCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration of the network",
		Long: `Config prints the document of kind: Network that the service has, with defaults filled in and
without comments. With -o json or yaml it prints what "headgate check" prints of it.`,
		Example: "  headgate network config > network.yaml", Args: cobra.NoArgs,
	}
	var text string
	query(a, c, func(q request) (out summary.Network, err error) {
		got, err := api.Decode[api.NetworkConfig](getNetworkConfig(q))
		if err != nil {
			return out, err
		}
		text = got.Text
		set, err := config.Parse("service", []byte(text))
		if err != nil {
			return out, err
		}
		return summary.Of(set).Networks[0], nil
	}, func(w io.Writer, _ summary.Network) error {
		_, err := io.WriteString(w, text)
		return err
	})
	return c
}

func networkClearCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear",
		Short: "Delete the configuration of the network",
		Long: `Clear deletes the document of kind: Network of the service. Its listeners are closed, which
disconnects their switches. Switches keep their flows: the network forwards as before.`,
		Example: "  headgate network clear", Args: cobra.NoArgs,
	}
	remove(a, c, "network", func(q request) (*http.Response, error) {
		return q.client.DeleteNetworkConfig(q.ctx, &api.DeleteNetworkConfigParams{DryRun: q.dry})
	})
	return c
}
