package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
)

var tenants = resource[api.Tenant]{
	kind: "tenant", columns: []string{"NAME", "REQUESTS/s", "DESCRIPTION"},
	row: func(t api.Tenant) []string {
		requests := "default"
		if t.RequestsPerSecond != nil {
			requests = fmt.Sprint(*t.RequestsPerSecond)
		}
		return []string{orEmpty(t.Name), requests, orEmpty(t.Description)}
	},
	page: func(q request, after *string) ([]api.Tenant, *string, error) {
		page, err := api.Decode[api.TenantList](q.client.ListTenants(q.ctx, &api.ListTenantsParams{After: after}))
		return page.Items, page.Next, err
	},
	name: func(t api.Tenant) *string { return t.Name },
	get:  func(q request) (*http.Response, error) { return q.client.GetTenant(q.ctx, q.args[0]) },
	delete: func(q request) (*http.Response, error) {
		return q.client.DeleteTenant(q.ctx, q.args[0], &api.DeleteTenantParams{DryRun: q.dry})
	},
}

func tenantCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "tenant",
		Short: "Create, list and delete tenants of a service",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(
		tenantSetCommand(a),
		tenants.listCommand(a, &cobra.Command{
			Use: "list", Short: "List tenants", Example: "  headgate tenant list", Args: cobra.NoArgs,
		}),
		tenants.showCommand(a, &cobra.Command{
			Use: "show NAME", Short: "Show a tenant", Example: "  headgate tenant show shop", Args: cobra.ExactArgs(1),
		}),
		tenants.deleteCommand(a, &cobra.Command{
			Use: "delete NAME", Short: "Delete a tenant that has no groups and no valid tokens", Example: "  headgate tenant delete shop", Args: cobra.ExactArgs(1),
		}),
	)
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
	description := c.Flags().String("description", "", "a description of the tenant")
	requests := c.Flags().Int("requests", 0, "rate limit of the tenant's tokens, in requests per second; 0 is the default of 50")
	server := change(a, c, tenants.kind, tenants.get, func(q request, next api.Tenant, tag *string) (api.Tenant, error) {
		if c.Flags().Changed("description") {
			next.Description = optional(*description)
		}
		if c.Flags().Changed("requests") {
			next.RequestsPerSecond = nil
			if *requests != 0 {
				next.RequestsPerSecond = requests
			}
		}
		return api.Decode[api.Tenant](q.client.PutTenant(q.ctx, q.args[0], &api.PutTenantParams{IfMatch: tag, DryRun: q.dry}, next))
	})
	c.ValidArgsFunction = firstArg(tenants.complete(server))
	return c
}
