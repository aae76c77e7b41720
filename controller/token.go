package controller

import (
	"context"
	"time"

	"headgate/api"
	"headgate/store"
)

// HasOperator tells whether an operator's token is good now.
func HasOperator(ctx context.Context, s *store.Store) (bool, error) {
	docs, _, err := s.All(ctx, store.Prefix(store.Tokens), 0)
	if err != nil {
		return false, err
	}
	return operates(docs)
}

func operates(tokens []store.Doc) (bool, error) {
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

// FirstToken makes an operator's token of a secret (api.NewSecret) that is kept somewhere already, if
// no other operator's is good: made tells whether it is that one that is, also when it was made
// before.
func FirstToken(ctx context.Context, s *store.Store, secret string) (t store.Token, made bool, err error) {
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
		if there, err := operates(docs); err != nil || there {
			return err
		}
		t, made = fresh, true
		return tx.Put(key, t)
	})
	return t, made, err
}
