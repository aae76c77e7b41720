package cli

import (
	"context"
	"net"
	"path/filepath"
	"time"

	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/store"
)

// firstToken creates an operator token if none is valid, and prints its file.
func (a *app) firstToken(ctx context.Context, s *store.Store, r controllerOptions, pin string) error {
	file := filepath.Join(r.dir, "operator.token")
	t, made, err := controller.EnsureOperatorTokenFile(ctx, s, file)
	if err != nil || !made {
		return err
	}
	a.note("operator token created in %s: headgate login https://%s --pin %s --token-file %[1]s", file, net.JoinHostPort(r.at(r.self())[0], portText(r.controllers.API)), pin)
	a.note("the token expires at %s: create another one before, with \"headgate token create NAME --role operator\"", t.Expires.Local().Format(time.DateTime))
	return nil
}
