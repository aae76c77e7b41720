package controller

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/store"
)

// EnsureOperatorTokenFile creates an operator token if none is valid, with its secret in a new file. The secret is
// written to disk before its hash is written to the store, so that a crash in between cannot lose it; the next start
// continues from either step. made reports whether the caller has to announce the token: it is false if a token
// is valid, if another controller creates one, and if the store is full, which is logged.
func EnsureOperatorTokenFile(ctx context.Context, s *store.Store, file string) (t store.Token, made bool, err error) {
	fresh := file + ".new"
	secret, err := pendingToken(ctx, s, fresh)
	if err != nil || secret == "" {
		return t, false, err
	}
	t, made, err = EnsureOperatorToken(ctx, s, secret)
	switch {
	case errors.Is(err, store.ErrFull):
		slog.Error("no operator token is valid and the store is full, cannot create one: free space in the store and restart the controller", "error", err)
		return t, false, nil
	case err != nil:
		return t, false, err
	case !made: // another controller has created one
		return t, false, os.Remove(fresh)
	}
	return t, true, os.Rename(fresh, file)
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
	if there, err := hasOperatorToken(ctx, s); err != nil || there {
		return "", err
	}
	secret = server.NewSecret()
	return secret, wholefile.Write(file, []byte(secret+"\n"), 0o600)
}

// hasOperatorToken reports whether a valid operator token exists.
func hasOperatorToken(ctx context.Context, s *store.Store) (bool, error) {
	restored, _, err := s.Get(ctx, store.RestoreKey, 0)
	if err != nil {
		return false, err
	}
	docs, _, err := s.All(ctx, store.Prefix(store.Tokens), 0)
	if err != nil {
		return false, err
	}
	return hasOperator(docs, restored.Revision)
}

// hasOperator reports whether one of some tokens is a valid one of an operator. Those before a revision are of a backup that no operator has confirmed.
func hasOperator(tokens []store.Doc, restored int64) (bool, error) {
	for _, d := range tokens {
		if d.Revision != 0 && d.Revision < restored {
			continue
		}
		var t store.Token
		if err := d.Into(&t); err != nil {
			return false, err
		}
		if t.Role == store.Operator && time.Now().Before(t.Expires) {
			return true, nil
		}
	}
	return false, nil
}

// EnsureOperatorToken creates an operator token from a secret (server.NewSecret) that the caller has stored
// already, unless another valid operator token exists. made reports whether the token of this secret
// is valid, also if an earlier call created it.
func EnsureOperatorToken(ctx context.Context, s *store.Store, secret string) (t store.Token, made bool, err error) {
	key, fresh := server.FirstToken(secret)
	_, err = s.Do(ctx, store.Prefix(store.Tokens), func(tx *store.Tx) error {
		_, there, err := tx.Get(key, &t)
		if made = err == nil && there && time.Now().Before(t.Expires); made || err != nil {
			return err
		}
		_, restored, err := tx.Unconfirmed()
		if err != nil {
			return err
		}
		docs, err := tx.All(store.Prefix(store.Tokens))
		if err != nil {
			return err
		}
		if there, err := hasOperator(docs, restored); err != nil || there {
			return err
		}
		t, made = fresh, true
		return tx.Put(key, t)
	})
	return t, made, err
}
