package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Tx is one transaction: it reads documents as they are, and writes them all or none. It must
// not be used by two goroutines.
type Tx struct {
	ctx   context.Context
	store *Store
	// read are revisions of keys as they were read, 0 for one that is not there; ranges are of
	// prefixes, which nobody may have written to since.
	read   map[string]kept
	ranges map[string]int64
	write  map[string][]byte // nil deletes
	again  bool              // it was tried before
}

type kept struct {
	value    []byte
	revision int64
}

func newTx(ctx context.Context, s *Store, again bool) *Tx {
	return &Tx{ctx: ctx, store: s, again: again, read: map[string]kept{}, ranges: map[string]int64{}, write: map[string][]byte{}}
}

// Get reads a document into value, and tells whether it is there and its revision: 0 if this
// transaction has written it.
func (t *Tx) Get(key string, value any) (revision int64, ok bool, err error) {
	text, written := t.write[key]
	if !written {
		k, err := t.fetch(key)
		if err != nil {
			return 0, false, err
		}
		text, revision = k.value, k.revision
	}
	if text == nil {
		return revision, false, nil
	}
	return revision, true, decode(key, text, value)
}

func (t *Tx) fetch(key string) (kept, error) {
	if k, ok := t.read[key]; ok {
		return k, nil
	}
	// What the member that is spoken to has is enough at first: commit asks most of the members whether it
	// is so. Once it was not it may stay so for a while, for who asks it again.
	var how []clientv3.OpOption
	if !t.again {
		how = append(how, clientv3.WithSerializable())
	}
	got, err := t.store.client.Get(t.ctx, key, how...)
	if err != nil {
		return kept{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	var k kept
	if len(got.Kvs) > 0 {
		k = kept{got.Kvs[0].Value, got.Kvs[0].ModRevision}
	}
	t.read[key] = k
	return k, nil
}

// Keys are those of the documents below a prefix. Somebody who adds one meanwhile makes the
// transaction be tried again; somebody who removes one does not.
func (t *Tx) Keys(below string) ([]string, error) {
	got, err := t.store.client.Get(t.ctx, below, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	t.seen(below, got.Header.Revision)
	var keys []string
	for _, kv := range got.Kvs {
		if text, written := t.write[string(kv.Key)]; !written || text != nil {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys, nil
}

// All are the documents below a prefix, in the order of their keys; those that this transaction has
// written have no revision. However many they are, they count as one of what a transaction may
// have. Somebody who adds or changes one meanwhile makes the transaction be tried again; somebody who
// removes one does not.
func (t *Tx) All(below string) (docs []Doc, err error) {
	docs, revision, err := t.store.All(t.ctx, below, 0)
	if err != nil {
		return nil, err
	}
	t.seen(below, revision)
	docs = slices.DeleteFunc(docs, func(d Doc) bool { _, written := t.write[d.Key]; return written })
	for key, text := range t.write {
		if text != nil && strings.HasPrefix(key, below) {
			docs = append(docs, Doc{Key: key, Value: text})
		}
	}
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.Key, b.Key) })
	return docs, nil
}

// seen notes as of when what is below a prefix was read.
func (t *Tx) seen(below string, revision int64) {
	if before, ok := t.ranges[below]; !ok || revision < before {
		t.ranges[below] = revision
	}
}

// Put writes a document.
func (t *Tx) Put(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("the document %s cannot be written: %w", key, err)
	}
	t.write[key] = text
	return nil
}

// Delete takes a document away.
func (t *Tx) Delete(key string) { t.write[key] = nil }

// save is what was written so far, for restore.
func (t *Tx) save() map[string][]byte           { return maps.Clone(t.write) }
func (t *Tx) restore(written map[string][]byte) { t.write = written }

// commit writes if nobody has changed meanwhile what was read; ok is false if somebody has. A
// transaction that writes nothing is asked, too: what it read was so at one time.
func (t *Tx) commit() (revision int64, ok bool, err error) {
	var cmps []clientv3.Cmp
	for key, k := range t.read {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(key), "=", k.revision))
	}
	for below, at := range t.ranges {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(below).WithPrefix(), "<", at+1))
	}
	var ops []clientv3.Op
	for key, text := range t.write {
		if text == nil {
			ops = append(ops, clientv3.OpDelete(key))
		} else {
			ops = append(ops, clientv3.OpPut(key, string(text)))
		}
	}
	if len(ops) == 0 {
		ops = append(ops, clientv3.OpGet(EpochKey, clientv3.WithKeysOnly())) // asks most of the members
	}
	got, err := t.store.client.Txn(t.ctx).If(cmps...).Then(ops...).Commit()
	switch {
	case err == nil:
		return got.Header.Revision, got.Succeeded, nil
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return 0, false, ErrTooLarge
	case errors.Is(err, rpctypes.ErrNoSpace):
		return 0, false, ErrFull
	}
	return 0, false, fmt.Errorf("%w: %w", ErrUnknown, err)
}

func decode(key string, text []byte, value any) error {
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("the document %s cannot be read: %w", key, err)
	}
	return nil
}
