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

// firstToken makes an operator's token if none is good, and says where it is. Its secret is on the disk
// before the store has its hash, so that it cannot be lost in between; whichever of the two a
// controller that was killed had come to, the next start goes on from there.
func (a *app) firstToken(ctx context.Context, s *store.Store, r controllerRun, pin string) error {
	file := filepath.Join(r.dir, "operator.token")
	fresh := file + ".new"
	secret, err := begunToken(ctx, s, fresh)
	if err != nil || secret == "" {
		return err
	}
	t, made, err := controller.FirstToken(ctx, s, secret)
	switch {
	case errors.Is(err, store.ErrFull):
		slog.Error("no operator's token is good, and none can be made: start the controller again when the store has room", "error", err)
		return nil
	case err != nil:
		return err
	case !made: // another controller was faster
		return os.Remove(fresh)
	}
	if err := os.Rename(fresh, file); err != nil {
		return err
	}
	a.note("the first operator's token is in %s: headgate login https://%s --pin %s --token-file %[1]s", file, net.JoinHostPort(r.at(r.self())[0], portText(r.controllers.API)), pin)
	a.note("it is good until %s: make another before, with \"headgate token create NAME --role operator\"", t.Expires.Local().Format(time.DateTime))
	return nil
}

// begunToken is the secret that is in the file, or a new one that is put there; "" if none is needed.
func begunToken(ctx context.Context, s *store.Store, file string) (secret string, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if secret, whole := strings.CutSuffix(string(text), "\n"); whole {
		return secret, nil
	}
	if there, err := controller.HasOperator(ctx, s); err != nil || there {
		return "", err
	}
	secret = api.NewSecret()
	return secret, wholefile.Write(file, []byte(secret+"\n"), 0o600)
}
