package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
)

var tokens = resource[api.Token]{
	kind: "token", columns: []string{"ID", "NAME", "ROLE", "SCOPE", "EXPIRES"},
	row: func(t api.Token) []string {
		scope := "-"
		if t.Tenant != nil {
			scope = *t.Tenant
		} else if t.Host != nil {
			scope = *t.Host
		}
		return []string{t.Id, t.Name, string(t.Role), scope, t.Expires.Local().Format(time.DateTime)}
	},
	page: func(q request, after *string) ([]api.Token, *string, error) {
		page, err := api.Decode[api.TokenList](q.client.ListTokens(q.ctx, &api.ListTokensParams{After: after}))
		return page.Items, page.Next, err
	},
}

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(
		tokenCreateCommand(a),
		tokens.listCommand(a, &cobra.Command{
			Use: "list", Short: "List tokens, without their secrets", Example: "  headgate token list", Args: cobra.NoArgs,
		}),
		tokenDeleteCommand(),
	)
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
	role := "tenant"
	c.Flags().Var(enumFlag{&role, []string{"operator", "tenant", "viewer", "agent"}}, "role", "the role of the token")
	tenant := c.Flags().String("tenant", "", "the `TENANT` of the token")
	host := c.Flags().String("host", "", "the `HOST` that joins with the token")
	life := c.Flags().String("life", "", "the lifetime of the token, such as 30d (default: 90d, or 1h for a host)")
	query(a, c, func(q request) (api.NewToken, error) {
		return api.Decode[api.NewToken](q.client.CreateToken(q.ctx, nil, api.TokenRequest{
			Name: q.args[0], Role: api.Role(role), Tenant: optional(*tenant), Host: optional(*host), Lifetime: optional(*life),
		}))
	}, func(w io.Writer, made api.NewToken) error {
		_, err := fmt.Fprintln(w, made.Token)
		return err
	})
	return c
}

func tokenDeleteCommand() *cobra.Command {
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
