package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/login"
)

func loginCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "login URL",
		Short: "Store a token for commands with --server",
		Long: `Login validates a token at a service and stores it with the service's certificate pin, in a file
that only the user can read. Commands with --server select it by URL or by profile name.
Without --token-file the token is read from standard input.`,
		Example: `  headgate login https://10.0.0.1:8420 --pin yKx... --token-file operator.token
  headgate apply --server default --host web1 -f web1.yaml`,
		Args: cobra.ExactArgs(1),
	}
	file := c.Flags().String("token-file", "-", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the certificate pin: the `HASH` of the service's certificate authority, from the operator")
	ca := c.Flags().String("ca-file", "", "write the certificate of the service's certificate authority to this `FILE`, for other programs (curl --cacert)")
	profile := c.Flags().String("profile", "default", "the `NAME` under which the login is stored")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *pin == "" {
			return usageError{errors.New("missing --pin: it authenticates the service; ask the operator for it"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		l := login.Credentials{URL: strings.TrimSuffix(args[0], "/"), Token: token, Pin: *pin}
		client, err := l.Client(login.RequestTimeout)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		r, err := client.Login(c.Context(), nil, api.LoginJSONRequestBody{Token: token})
		who, err := api.Decode[api.Principal](r, err)
		if err != nil {
			return err
		}
		if *ca != "" {
			if err := login.WriteAuthority(*ca, r.TLS, *pin); err != nil {
				return err
			}
		}
		all, err := login.Load()
		if err != nil {
			return err
		}
		all.Profiles[*profile], all.Newest = l, *profile
		if err := all.Save(); err != nil {
			return err
		}
		as := string(who.Role)
		if who.Tenant != nil {
			as += " of " + *who.Tenant
		}
		a.note("logged in as %s, %s", who.Name, as)
		return nil
	}
	return c
}

func logoutCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "logout [PROFILE]",
		Short: "Remove a stored login",
		Long: `Logout removes a login of this user, by default the newest one. Its token stays valid at the service until it
ends: "headgate token delete" revokes it.`,
		Example: `  headgate logout
  headgate logout shop`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			all, err := login.Load()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(all.Profiles)), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		all, err := login.Load()
		if err != nil {
			return err
		}
		profile := strings.Join(args, "")
		if len(args) == 0 {
			profile = all.Newest
		}
		l, err := all.Remove(profile)
		if err != nil {
			return err
		}
		if err := all.Save(); err != nil {
			return err
		}
		a.note("removed the login %s at %s", profile, l.URL)
		return nil
	}
	return c
}

// service returns a client for the value of --server: a profile or URL, or "" for the newest login.
func service(server string) (*api.Client, error) {
	l, err := login.Find(server)
	if err != nil {
		return nil, err
	}
	return l.Client(login.RequestTimeout)
}
