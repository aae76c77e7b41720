package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate/api"
	"headgate/controller"
	"headgate/internal/wholefile"
	"headgate/store"
)

// firstToken creates an operator token if none is valid, and prints its file. The secret is written to
// disk before its hash is written to the store, so that a crash in between cannot lose it; the next start
// continues from either step.
func (a *app) firstToken(ctx context.Context, s *store.Store, r controllerOptions, pin string) error {
	file := filepath.Join(r.dir, "operator.token")
	fresh := file + ".new"
	secret, err := pendingToken(ctx, s, fresh)
	if err != nil || secret == "" {
		return err
	}
	t, made, err := controller.EnsureOperatorToken(ctx, s, secret)
	switch {
	case errors.Is(err, store.ErrFull):
		slog.Error("no operator token is valid and the store is full, cannot create one: free space in the store and restart the controller", "error", err)
		return nil
	case err != nil:
		return err
	case !made: // another controller has created one
		return os.Remove(fresh)
	}
	if err := os.Rename(fresh, file); err != nil {
		return err
	}
	a.note("operator token created in %s: headgate login https://%s --pin %s --token-file %[1]s", file, net.JoinHostPort(r.at(r.self())[0], portText(r.controllers.API)), pin)
	a.note("the token expires at %s: create another one before, with \"headgate token create NAME --role operator\"", t.Expires.Local().Format(time.DateTime))
	return nil
}

// pendingToken returns the secret in the file, or writes a new one to it; "" if a valid operator token exists.
func pendingToken(ctx context.Context, s *store.Store, file string) (secret string, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if secret, whole := strings.CutSuffix(string(text), "\n"); whole {
		return secret, nil
	}
	if there, err := controller.HasOperatorToken(ctx, s); err != nil || there {
		return "", err
	}
	secret = api.NewSecret()
	return secret, wholefile.Write(file, []byte(secret+"\n"), 0o600)
}
