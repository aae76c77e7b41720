package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
)

func controllerConfirmCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "confirm-restore",
		Short: "Permit the tokens and hosts of a restored backup again",
		Long: `Confirm-restore prints the tokens and the hosts of the backup that the service was restored
from. They are refused, because some may have been revoked since the backup. With --yes it
revokes those of --revoke-token and --revoke-host, and permits all others again: hosts then
apply the desired state of the backup.

It needs the operator token that the controller created when it started after the restore
(the file operator.token in its data directory).`,
		Example: `  headgate login https://10.0.0.1:8420 --pin yKx... --token-file /var/lib/headgate/controller/operator.token
  headgate controller confirm-restore
  headgate controller confirm-restore --revoke-token 3f9a0c2b7d11 --revoke-host web3 --yes`,
		Args: cobra.NoArgs,
	}
	yes := c.Flags().Bool("yes", false, "confirm")
	revokeTokens := c.Flags().StringSlice("revoke-token", nil, "revoke the tokens with these `IDS`")
	revokeHosts := c.Flags().StringSlice("revoke-host", nil, "revoke the hosts with these `NAMES`")
	server, output := serverFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		if !*yes {
			if len(*revokeTokens)+len(*revokeHosts) > 0 {
				return usageError{errors.New("--yes is missing: nothing is revoked without it"), c.CommandPath()}
			}
			is, err := api.Decode[api.Restore](client.GetRestore(c.Context()))
			if err != nil {
				return err
			}
			return a.print(*output, is, func(w io.Writer) error { return restoreTable(w, is) })
		}
		var revoke api.RestoreConfirmation
		if len(*revokeTokens) > 0 {
			revoke.RevokeTokens = revokeTokens
		}
		if len(*revokeHosts) > 0 {
			revoke.RevokeHosts = revokeHosts
		}
		_, err = api.Decode[struct{}](client.ConfirmRestore(c.Context(), nil, revoke))
		if err == nil {
			a.note("the tokens and hosts of the backup are permitted, but for %d tokens and %d hosts, which are revoked", len(*revokeTokens), len(*revokeHosts))
		}
		return err
	}
	return c
}

// restoreTable prints what a confirmation permits.
func restoreTable(w io.Writer, is api.Restore) error {
	fmt.Fprintf(w, "restored at %s; refused until confirmed with --yes:\n\n", is.At.Local().Format(time.DateTime))
	rows := [][]string{tokens.columns}
	for _, t := range is.Tokens {
		rows = append(rows, tokens.row(t))
	}
	if err := text.Table(w, "  ", rows); err != nil {
		return err
	}
	rows = [][]string{{"HOST", "DESCRIPTION"}}
	for _, h := range is.Hosts {
		rows = append(rows, []string{orNone(h.Name), orNone(h.Description)})
	}
	fmt.Fprintln(w)
	return text.Table(w, "  ", rows)
}

func controllerTakeBackCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "take-back",
		Short: "Have agents that are ahead of the service accept its desired state",
		Long: `Take-back begins a new epoch. An agent refuses a desired state that is earlier than the one
that it has, so that a service that was restored by mistake takes nothing back on any host.
"headgate host list" shows such an agent as ahead. After "headgate controller restore" the
service begins a new epoch by itself, and this command is only needed if the clock of an
earlier restore was wrong. All hosts then apply what the service has now.`,
		Example: `  headgate host list
  headgate controller take-back`,
		Args: cobra.NoArgs,
	}
	server := serverFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		made, err := api.Decode[struct {
			Epoch int64 `json:"epoch"`
		}](client.TakeBack(c.Context(), nil))
		if err == nil {
			a.note("the service is in epoch %d: hosts apply its desired state", made.Epoch)
		}
		return err
	}
	return c
}
