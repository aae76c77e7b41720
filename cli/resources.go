package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
)

// Commands about resources of a service are data: a cobra.Command with its texts, and the calls of the API. The
// functions in this file add the flags that these commands share, and the printing.

// serverFlag adds --server to a command that works only with a service.
func serverFlag(c *cobra.Command) *string {
	return c.Flags().String("server", "", "the service, by its `URL` or a login profile (default: the newest login)")
}

func dryRunFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("dry-run", false, "validate and show the change, but do not make it")
}

// request is what a command has for its requests to a service.
type request struct {
	ctx    context.Context
	client *api.Client
	args   []string
	dry    *bool // the value of --dry-run, of commands that make changes
}

// query makes c a command that prints an answer of a service, with the flags --server, which it returns, and -o.
func query[T any](a *app, c *cobra.Command, ask func(request) (T, error), table func(io.Writer, T) error) (server *string) {
	server, output := serverFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		got, err := ask(request{ctx: c.Context(), client: client, args: args})
		if err != nil {
			return err
		}
		return a.print(*output, got, func(w io.Writer) error { return table(w, got) })
	}
	return server
}

// change makes c a command that creates or changes the resource of a kind that its arguments name, with the flags
// --server, which it returns, --dry-run and -o. It gives put the resource, or the zero value with no tag if there
// is none. It prints what put returns.
func change[T, U any](a *app, c *cobra.Command, kind string, get func(request) (*http.Response, error), put func(q request, now T, tag *string) (U, error)) (server *string) {
	server, dry, output := serverFlag(c), dryRunFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		q := request{c.Context(), client, args, dry}
		now, tag, err := api.DecodeWithETag[T](get(q))
		if err != nil {
			return err
		}
		made, err := put(q, now, tag)
		if err != nil {
			return err
		}
		what := "created"
		if tag != nil {
			what = "changed"
		}
		return a.print(*output, made, outcome(q, kind, what))
	}
	return server
}

// remove makes c a command that deletes the resource of a kind that its arguments name, with the flags --server,
// which it returns, and --dry-run.
func remove(a *app, c *cobra.Command, kind string, send func(request) (*http.Response, error)) (server *string) {
	server, dry := serverFlag(c), dryRunFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := service(*server)
		if err != nil {
			return err
		}
		q := request{c.Context(), client, args, dry}
		if _, err := api.Decode[struct{}](send(q)); err != nil {
			return err
		}
		return outcome(q, kind, "deleted")(a.out)
	}
	return server
}

// outcome returns a function that prints the result of a change.
func outcome(q request, kind, what string) func(io.Writer) error {
	if *q.dry {
		what = "would be " + what
	}
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s\n", strings.Join(append([]string{kind}, q.args...), " "), what)
		return err
	}
}

// resource is a kind of resources that are listed in a table. Those with a name can also be shown and deleted.
type resource[T any] struct {
	kind    string
	columns []string
	row     func(T) []string
	page    func(q request, after *string) (items []T, next *string, err error)

	name   func(T) *string
	get    func(request) (*http.Response, error)
	delete func(request) (*http.Response, error)
	detail func(io.Writer, T) error // prints what show has below the table; nil for nothing
}

// table prints a row for each item.
func (r resource[T]) table(w io.Writer, all []T) error {
	rows := [][]string{r.columns}
	for _, t := range all {
		rows = append(rows, r.row(t))
	}
	return text.Table(w, "", rows)
}

// listCommand makes c a command that lists all items.
func (r resource[T]) listCommand(a *app, c *cobra.Command) *cobra.Command {
	query(a, c, func(q request) ([]T, error) {
		return api.ListAll(func(after *string) ([]T, *string, error) { return r.page(q, after) })
	}, r.table)
	return c
}

// showCommand makes c a command that shows the item that its argument names.
func (r resource[T]) showCommand(a *app, c *cobra.Command) *cobra.Command {
	server := query(a, c, func(q request) (T, error) { return api.Decode[T](r.get(q)) }, func(w io.Writer, one T) error {
		if err := r.table(w, []T{one}); err != nil || r.detail == nil {
			return err
		}
		return r.detail(w, one)
	})
	c.ValidArgsFunction = firstArg(r.complete(server))
	return c
}

// deleteCommand makes c a command that deletes the item that its argument names.
func (r resource[T]) deleteCommand(a *app, c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = firstArg(r.complete(remove(a, c, r.kind, r.delete)))
	return c
}

// completionTimeout is the timeout of requests for shell completion.
const completionTimeout = 2 * time.Second

// complete completes names, from the first page.
func (r resource[T]) complete(server *string) completion {
	return served(server, func(q request) (found []string, err error) {
		items, _, err := r.page(q, nil)
		for _, t := range items {
			found = append(found, orNone(r.name(t)))
		}
		return found, err
	})
}

// served completes the words that a service has.
func served(server *string, words func(q request) ([]string, error)) completion {
	return names(func(*cobra.Command) ([]string, error) {
		client, err := service(*server)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		return words(request{ctx: ctx, client: client})
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

// optional returns a pointer to text, or nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// orNone returns an optional value, or the zero value.
func orNone[T any](v *T) (none T) {
	if v == nil {
		return none
	}
	return *v
}
