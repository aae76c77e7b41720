package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
)

// serverFlag adds --server to a command that works only with a service.
func serverFlag(c *cobra.Command) *string {
	return c.Flags().String("server", "", "the service, by its `URL` or a login profile (default: the newest login)")
}

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenDeleteCommand(a))
	return c
}

func tokenCreateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Create a token and print it",
		Long: `Create creates a token and prints it. The token cannot be printed again. An operator may do
everything. A tenant may change its own groups. A viewer may read the groups of its tenant, or
everything without a tenant. A token with the role agent lets one host join, once. A tenant's token
can create further tokens of the same tenant.`,
		Example: `  headgate token create ci --role tenant --tenant shop --life 30d
  headgate token create web1 --role agent --host web1 > join.token`,
		Args: cobra.ExactArgs(1),
	}
	server := serverFlag(c)
	role := "tenant"
	c.Flags().Var(enumFlag{&role, []string{"operator", "tenant", "viewer", "agent"}}, "role", "the role of the token")
	tenant := c.Flags().String("tenant", "", "the `TENANT` of the token")
	host := c.Flags().String("host", "", "the `HOST` that joins with the token")
	life := c.Flags().String("life", "", "the lifetime of the token, such as 30d (default: 90d, or 1h for a host)")
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		made, err := api.Decode[api.NewToken](client.CreateToken(c.Context(), nil, api.TokenRequest{
			Name: args[0], Role: api.Role(role), Tenant: optional(*tenant), Host: optional(*host), Lifetime: optional(*life),
		}))
		if err != nil {
			return err
		}
		return a.print(*output, made, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, made.Token)
			return err
		})
	}
	return c
}

func tokenListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List tokens, without their secrets", Example: "  headgate token list", Args: cobra.NoArgs,
	}
	server := serverFlag(c)
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		all, err := api.ListAll(func(after *string) ([]api.Token, *string, error) {
			page, err := api.Decode[api.TokenList](client.ListTokens(c.Context(), &api.ListTokensParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(out io.Writer) error {
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tNAME\tROLE\tSCOPE\tEXPIRES")
			for _, t := range all {
				of := "-"
				if t.Tenant != nil {
					of = *t.Tenant
				} else if t.Host != nil {
					of = *t.Host
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Id, t.Name, t.Role, of, t.Expires.Local().Format(time.DateTime))
			}
			return w.Flush()
		})
	}
	return c
}

func tokenDeleteCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "delete ID", Short: "Revoke a token", Example: "  headgate token delete 3f9a0c2b7d11", Args: cobra.ExactArgs(1),
	}
	server := serverFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		_, err = api.Decode[struct{}](client.DeleteToken(c.Context(), args[0], nil))
		return err
	}
	return c
}
