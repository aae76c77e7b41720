package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
)

func tenantCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "tenant",
		Short: "Create, list and delete tenants of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(tenantSetCommand(a), tenantListCommand(a), tenantShowCommand(a), tenantDeleteCommand(a))
	return c
}

func tenantSetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "set NAME",
		Aliases: []string{"create"},
		Short:   "Create a tenant, or change one",
		Long: `Set creates a tenant, or changes the settings of a tenant that are given as flags. A new tenant
has no groups: the operator assigns groups to it with the key tenant: through the API. Clients of the
tenant need a token ("headgate token create").`,
		Example: `  headgate tenant set shop --description "the web shop"
  headgate tenant set shop --requests 200`,
		Args: cobra.ExactArgs(1),
	}
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	description := c.Flags().String("description", "", "a description of the tenant")
	requests := c.Flags().Int("requests", 0, "rate limit of the tenant's tokens, in requests per second; 0 is the default of 50")
	c.ValidArgsFunction = firstArg(completeTenants(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		now, tag, err := api.DecodeWithETag[api.Tenant](client.GetTenant(c.Context(), args[0]))
		if err != nil {
			return err
		}
		if c.Flags().Changed("description") {
			now.Description = optional(*description)
		}
		if c.Flags().Changed("requests") {
			now.RequestsPerSecond = nil
			if *requests != 0 {
				now.RequestsPerSecond = requests
			}
		}
		made, err := api.Decode[api.Tenant](client.PutTenant(c.Context(), args[0], &api.PutTenantParams{IfMatch: tag, DryRun: dry}, now))
		if err != nil {
			return err
		}
		return a.print(*output, made, printOutcome("tenant", args[0], "created", tag, *dry))
	}
	return c
}

func tenantListCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List tenants", Example: "  headgate tenant list", Args: cobra.NoArgs,
	}
	server, output := serverFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		all, err := api.ListAll(func(after *string) ([]api.Tenant, *string, error) {
			page, err := api.Decode[api.TenantList](client.ListTenants(c.Context(), &api.ListTenantsParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return err
		}
		return a.print(*output, all, func(w io.Writer) error { return tenantTable(w, all) })
	}
	return c
}

func tenantShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a tenant", Example: "  headgate tenant show shop", Args: cobra.ExactArgs(1),
	}
	server, output := serverFlag(c), outputFlag(c)
	c.ValidArgsFunction = firstArg(completeTenants(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		one, err := api.Decode[api.Tenant](client.GetTenant(c.Context(), args[0]))
		if err != nil {
			return err
		}
		return a.print(*output, one, func(w io.Writer) error { return tenantTable(w, []api.Tenant{one}) })
	}
	return c
}

func tenantTable(w io.Writer, all []api.Tenant) error {
	rows := [][]string{{"NAME", "REQUESTS/s", "DESCRIPTION"}}
	for _, t := range all {
		requests := "default"
		if t.RequestsPerSecond != nil {
			requests = fmt.Sprint(*t.RequestsPerSecond)
		}
		rows = append(rows, []string{orEmpty(t.Name), requests, orEmpty(t.Description)})
	}
	return text.Table(w, "", rows)
}

func tenantDeleteCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a tenant that has no groups and no tokens", Example: "  headgate tenant delete shop", Args: cobra.ExactArgs(1),
	}
	server, dry := serverFlag(c), dryRunFlag(c)
	c.ValidArgsFunction = firstArg(completeTenants(server))
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		if _, err := api.Decode[struct{}](client.DeleteTenant(c.Context(), args[0], &api.DeleteTenantParams{DryRun: dry})); err != nil {
			return err
		}
		return printOutcome("tenant", args[0], "deleted", nil, *dry)(a.out)
	}
	return c
}
