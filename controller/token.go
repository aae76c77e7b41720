package controller

import (
	"context"
	"time"

	"headgate/api"
	"headgate/store"
)

// HasOperatorToken reports whether a valid operator token exists.
func HasOperatorToken(ctx context.Context, s *store.Store) (bool, error) {
	docs, _, err := s.All(ctx, store.Prefix(store.Tokens), 0)
	if err != nil {
		return false, err
	}
	return hasOperator(docs)
}

func hasOperator(tokens []store.Doc) (bool, error) {
	for _, d := range tokens {
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

// EnsureOperatorToken creates an operator token from a secret (api.NewSecret) that the caller has stored
// already, unless another valid operator token exists. made reports whether the token of this secret
// is valid, also if an earlier call created it.
func EnsureOperatorToken(ctx context.Context, s *store.Store, secret string) (t store.Token, made bool, err error) {
	key, fresh := api.FirstToken(secret)
	_, err = s.Do(ctx, store.Prefix(store.Tokens), func(tx *store.Tx) error {
		_, there, err := tx.Get(key, &t)
		if made = err == nil && there && time.Now().Before(t.Expires); made || err != nil {
			return err
		}
		docs, err := tx.All(store.Prefix(store.Tokens))
		if err != nil {
			return err
		}
		if there, err := hasOperator(docs); err != nil || there {
			return err
		}
		t, made = fresh, true
		return tx.Put(key, t)
	})
	return t, made, err
}
