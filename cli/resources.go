package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
)

// Helpers for the commands about resources of a service.

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "validate and show the change, but do not make it")
}

// optional returns a pointer to text, or nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// printOutcome returns a function that prints the result of a change. With a tag the resource existed
// before, and was changed.
func printOutcome(kind, name, what string, tag *string, dry bool) func(io.Writer) error {
	if tag != nil {
		what = "changed"
	}
	if dry {
		what = "would be " + what
	}
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s: %s\n", kind, name, what)
		return err
	}
}

// completionTimeout is the timeout of requests for shell completion.
const completionTimeout = 2 * time.Second

// completeNames completes names of a service's resources.
func completeNames(server *string, list func(ctx context.Context, client *api.Client) ([]string, error)) completion {
	return names(func(*cobra.Command) ([]string, error) {
		client, err := service(*server)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		return list(ctx, client)
	})
}

func completeTenants(server *string) completion {
	return completeNames(server, func(ctx context.Context, client *api.Client) (found []string, err error) {
		page, err := api.Decode[api.TenantList](client.ListTenants(ctx, nil))
		for _, t := range page.Items {
			found = append(found, orEmpty(t.Name))
		}
		return found, err
	})
}

func completeHosts(server *string) completion {
	return completeNames(server, func(ctx context.Context, client *api.Client) (found []string, err error) {
		page, err := api.Decode[api.HostList](client.ListHosts(ctx, nil))
		for _, h := range page.Items {
			found = append(found, orEmpty(h.Name))
		}
		return found, err
	})
}

// firstArg completes only the first argument.
func firstArg(complete completion) completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, begun)
	}
}
