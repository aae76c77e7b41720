package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
)

// What commands about a service's resources share.

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "only say what would be changed")
}

// current is a resource as it is, and its ETag, with which it is changed only if it is still that;
// there is none of one that is not there yet.
func current[T any](r *http.Response, err error) (now T, tag *string, _ error) {
	now, err = asked[T](r, err)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil, nil
	}
	if err != nil {
		return now, nil, err
	}
	return now, given(r.Header.Get("ETag")), nil
}

// given is nil for what is not said.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// outcome is a sentence about what was done to a resource; with a tag it was there before.
func outcome(kind, name, what string, tag *string, dry bool) func(io.Writer) error {
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

// completePatience is for how long somebody waits who asks for the names that there are.
const completePatience = 2 * time.Second

// completeNames offers names that a service has.
func completeNames(server *string, list func(ctx context.Context, client *api.Client) ([]string, error)) completion {
	return names(func(*cobra.Command) ([]string, error) {
		client, err := service(*server)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), completePatience)
		defer cancel()
		return list(ctx, client)
	})
}

func completeTenants(server *string) completion {
	return completeNames(server, func(ctx context.Context, client *api.Client) (found []string, err error) {
		page, err := asked[api.TenantList](client.ListTenants(ctx, nil))
		for _, t := range page.Items {
			found = append(found, orEmpty(t.Name))
		}
		return found, err
	})
}

func completeHosts(server *string) completion {
	return completeNames(server, func(ctx context.Context, client *api.Client) (found []string, err error) {
		page, err := asked[api.HostList](client.ListHosts(ctx, nil))
		for _, h := range page.Items {
			found = append(found, orEmpty(h.Name))
		}
		return found, err
	})
}

// firstArg completes the first argument, and no other.
func firstArg(complete completion) completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, begun)
	}
}
