package controller

import (
	"context"

	"headgate/api"
	"headgate/store"
)

// FirstToken makes an operator's token if nobody has one of any kind: made tells whether it did.
func FirstToken(ctx context.Context, s *store.Store) (secret string, made bool, err error) {
	_, err = s.Do(ctx, store.Prefix(store.Tokens), func(tx *store.Tx) error {
		keys, err := tx.Keys(store.Prefix(store.Tokens))
		if made = err == nil && len(keys) == 0; !made {
			return err
		}
		secret, err = api.PutToken(tx, store.Token{Name: "first", Role: store.Operator})
		return err
	})
	return secret, made, err
}
