package controller

import (
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/store"
)

// Retention periods, chosen for Headgate.
const (
	answerRetention = 24 * time.Hour
	auditRetention  = 90 * 24 * time.Hour
	// revisionRetention is how far back an interface can be rolled back.
	revisionRetention = 7 * 24 * time.Hour
	// formerRetention is longer than agents keep their usage record of an interface.
	formerRetention = 8 * 24 * time.Hour
	sweepInterval   = time.Hour
	// maxAnswers is how many stored responses a tenant has, or a token without one: each has 16 KiB at most. trimInterval is how often older ones are deleted.
	maxAnswers   = 1000
	trimInterval = 10 * time.Second
	// sweepBatch is how many documents one transaction deletes.
	sweepBatch = 50
)

// sweepTokens deletes expired tokens.
func sweepTokens(ctx context.Context, t store.Term, now time.Time) error {
	return sweep(ctx, t, store.Tokens, func(d store.Doc) bool {
		var v store.Token
		return d.Into(&v) == nil && now.After(v.Expires)
	})
}

// sweepAnswers deletes the stored responses of idempotency keys that are too old for a retry.
func sweepAnswers(ctx context.Context, t store.Term, now time.Time) error {
	return sweep(ctx, t, store.IdempotentAnswers, func(d store.Doc) bool {
		var v struct {
			At time.Time `json:"at"`
		}
		return d.Into(&v) == nil && now.Sub(v.At) > answerRetention
	})
}

// trimAnswers deletes the oldest stored responses of a tenant that has more than maxAnswers.
func trimAnswers(ctx context.Context, t store.Term, _ time.Time) error {
	docs, err := t.Store().ByAge(ctx, store.Prefix(store.IdempotentAnswers))
	if err != nil {
		return err
	}
	count := map[string]int{}
	var old []string
	for _, d := range slices.Backward(docs) {
		_, name := store.Name(d.Key)
		if count[name[0]]++; count[name[0]] > maxAnswers {
			old = append(old, d.Key)
		}
	}
	return remove(ctx, t, store.Prefix(store.IdempotentAnswers), old)
}

// sweepAudit deletes old entries of the audit log.
func sweepAudit(ctx context.Context, t store.Term, now time.Time) error {
	return sweep(ctx, t, store.Audit, func(d store.Doc) bool {
		var v store.AuditEntry
		return d.Into(&v) == nil && now.Sub(v.At) > auditRetention
	})
}

// sweepRemoved deletes the ownership of removed interfaces, once agents have no usage record of them.
func sweepRemoved(ctx context.Context, t store.Term, now time.Time) error {
	return sweep(ctx, t, store.Removed, func(d store.Doc) bool {
		var v store.Interface
		if d.Into(&v) != nil {
			return false
		}
		for _, at := range v.OwnerChanged {
			if now.Sub(at) < formerRetention {
				return false
			}
		}
		return true
	})
}

// sweep deletes the documents of a kind for which over returns true.
func sweep(ctx context.Context, t store.Term, kind string, over func(store.Doc) bool) error {
	below := store.Prefix(kind)
	for after := ""; ; {
		docs, more, _, err := t.Store().List(ctx, below, after, 1000)
		if err != nil {
			return err
		}
		var keys []string
		for _, d := range docs {
			after = d.Key
			if over(d) {
				keys = append(keys, d.Key)
			}
		}
		if err := remove(ctx, t, below, keys); err != nil || !more {
			return err
		}
	}
}

// remove deletes documents in batches of sweepBatch.
func remove(ctx context.Context, t store.Term, below string, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), sweepBatch)
		if _, err := t.Do(ctx, below+"sweep", func(tx *store.Tx) error {
			for _, k := range keys[:n] {
				tx.Delete(k)
			}
			return nil
		}); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
