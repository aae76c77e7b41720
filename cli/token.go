package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
)

// serverFlag is that of commands which only a service knows.
func serverFlag(c *cobra.Command) *string {
	return c.Flags().String("server", "", "the service, by its `URL` or a login's profile; the newest login if left out")
}

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and take back tokens of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenDeleteCommand(a))
	return c
}

func tokenCreateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Make a token, and print it this once",
		Long: `Create makes a token. An operator may do everything; a tenant changes what is in its own
groups, and a viewer sees that, or everything if it is of no tenant. A token of the role agent
lets one host join, once. Who has a tenant's token can make more of that tenant's.`,
		Example: `  headgate token create ci --role tenant --tenant shop --life 30d
  headgate token create web1 --role agent --host web1 > join.token`,
		Args: cobra.ExactArgs(1),
	}
	server := serverFlag(c)
	role := "tenant"
	c.Flags().Var(oneWord{&role, []string{"operator", "tenant", "viewer", "agent"}}, "role", "what it may do")
	tenant := c.Flags().String("tenant", "", "the `TENANT` whose it is")
	host := c.Flags().String("host", "", "the `HOST` that joins with it")
	life := c.Flags().String("life", "", "for how long it is good, such as 30d; 90d, and 1h for a host, if left out")
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		made, err := asked[api.NewToken](client.CreateToken(c.Context(), nil, api.TokenRequest{
			Name: args[0], Role: api.Role(role), Tenant: given(*tenant), Host: given(*host), Life: given(*life),
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
		Use: "list", Short: "List tokens, which are not shown themselves", Example: "  headgate token list", Args: cobra.NoArgs,
	}
	server := serverFlag(c)
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		all, err := every(func(after *string) ([]api.Token, *string, error) {
			page, err := asked[api.TokenList](client.ListTokens(c.Context(), &api.ListTokensParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(out io.Writer) error {
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tNAME\tROLE\tOF\tUNTIL")
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
		Use: "delete ID", Short: "Take a token back: nobody gets in with it any more", Example: "  headgate token delete 3f9a0c2b7d11", Args: cobra.ExactArgs(1),
	}
	server := serverFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		_, err = asked[struct{}](client.DeleteToken(c.Context(), args[0], nil))
		return err
	}
	return c
}
