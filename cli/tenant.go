package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
)

var tenants = resource[api.Tenant]{
	kind: "tenant", columns: []string{"NAME", "REQUESTS/s", "DESCRIPTION"},
	row: func(t api.Tenant) []string {
		requests := "default"
		if t.RequestsPerSecond != nil {
			requests = fmt.Sprint(*t.RequestsPerSecond)
		}
		return []string{orNone(t.Name), requests, orNone(t.Description)}
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
tenant need a token ("headgate token create"). A tenant may reserve bandwidth across the network only
if --reserve-rate permits it. Without --reserve-ends it may reserve between all hosts of the network,
also those of other tenants.`,
		Example: `  headgate tenant set shop --description "the web shop"
  headgate tenant set shop --requests 200
  headgate tenant set shop --reserve-rate 500Mbit --reserve-for 12h --reserve-ends web1,10.0.0.0/24`,
		Args: cobra.ExactArgs(1),
	}
	description := c.Flags().String("description", "", "a description of the tenant")
	requests := c.Flags().Int("requests", 0, "rate limit of the tenant's tokens, in requests per second; 0 is the default of 50")
	var rate rateFlag
	c.Flags().Var(&rate, "reserve-rate", "permit reservations up to this total at every moment: both directions, and spare paths; 0bit permits none")
	class := c.Flags().Int("reserve-class", 4, "the highest class of the tenant's reservations: 1 is served first")
	longest := c.Flags().Duration("reserve-for", 24*time.Hour, "how long a reservation may last")
	ahead := c.Flags().Duration("reserve-ahead", 7*24*time.Hour, "how far in the future a reservation may begin")
	ends := c.Flags().StringSlice("reserve-ends", nil, "the `HOSTS`, sites, addresses and prefixes between which the tenant may reserve (default: all of the network)")
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
		next.Reservations = reservationBounds(c, next.Reservations, api.ReservationBounds{
			Rate: unit.Rate(rate).String(), Class: class, Duration: longest.String(), Ahead: ahead.String(), Ends: ends,
		})
		return api.Decode[api.Tenant](q.client.PutTenant(q.ctx, q.args[0], &api.PutTenantParams{IfMatch: tag, DryRun: q.dry}, next))
	})
	c.ValidArgsFunction = firstArg(tenants.complete(server))
	return c
}

// reservationBounds returns the bounds of a tenant's reservations: those it had, with what is given as a flag.
func reservationBounds(c *cobra.Command, had *api.ReservationBounds, given api.ReservationBounds) *api.ReservationBounds {
	set := c.Flags().Changed
	if had == nil && !set("reserve-rate") {
		return nil
	}
	next := given
	if had != nil {
		next = *had
	}
	if set("reserve-rate") {
		next.Rate = given.Rate
	}
	if set("reserve-class") {
		next.Class = given.Class
	}
	if set("reserve-for") {
		next.Duration = given.Duration
	}
	if set("reserve-ahead") {
		next.Ahead = given.Ahead
	}
	if set("reserve-ends") {
		next.Ends = given.Ends
	}
	if next.Ends != nil && len(*next.Ends) == 0 {
		next.Ends = nil
	}
	if next.Rate == unit.Rate(0).String() {
		return nil
	}
	return &next
}
