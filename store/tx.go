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

// Tx is a transaction: it reads documents, and writes all its changes or none. A Tx must not be used by
// two goroutines.
type Tx struct {
	ctx   context.Context
	store *Store
	// read has the documents that were read, with revision 0 for one that does not exist. ranges has the
	// revisions at which prefixes were read; no key below them may have been written since.
	read   map[string]readDoc
	ranges map[string]int64
	write  map[string][]byte // nil deletes the document
	retry  bool              // an earlier attempt of this transaction failed
}

type readDoc struct {
	value    []byte
	revision int64
}

func newTx(ctx context.Context, s *Store, again bool) *Tx {
	return &Tx{ctx: ctx, store: s, retry: again, read: map[string]readDoc{}, ranges: map[string]int64{}, write: map[string][]byte{}}
}

// Get decodes a document into value. It returns the document's revision, 0 if this transaction has
// written it, and whether the document exists.
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

func (t *Tx) fetch(key string) (readDoc, error) {
	if k, ok := t.read[key]; ok {
		return k, nil
	}
	// The first attempt uses serializable reads of the connected member: commit checks with a quorum that
	// they were current. After a failed attempt the member may lag for a while, so reads are linearizable.
	var how []clientv3.OpOption
	if !t.retry {
		how = append(how, clientv3.WithSerializable())
	}
	got, err := t.store.client.Get(t.ctx, key, how...)
	if err != nil {
		return readDoc{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var k readDoc
	if len(got.Kvs) > 0 {
		if k.value, err = withoutChecksum(key, got.Kvs[0].Value); err != nil {
			return readDoc{}, err
		}
		k.revision = got.Kvs[0].ModRevision
	}
	t.read[key] = k
	return k, nil
}

// Keys returns the keys of the documents below a prefix. The transaction is retried if another client
// adds one meanwhile, but not if it removes one.
func (t *Tx) Keys(below string) ([]string, error) {
	got, err := t.store.client.Get(t.ctx, below, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	t.noteRange(below, got.Header.Revision)
	var keys []string
	for _, kv := range got.Kvs {
		if text, written := t.write[string(kv.Key)]; !written || text != nil {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys, nil
}

// All returns the documents below a prefix, sorted by key. Those that this transaction has written
// have no revision. However many documents there are, they count as one operation of the transaction.
// The transaction is retried if another client adds or changes one meanwhile, but not if it removes
// one.
func (t *Tx) All(below string) (docs []Doc, err error) {
	docs, revision, err := t.store.All(t.ctx, below, 0)
	if err != nil {
		return nil, err
	}
	t.noteRange(below, revision)
	docs = slices.DeleteFunc(docs, func(d Doc) bool { _, written := t.write[d.Key]; return written })
	for key, text := range t.write {
		if text != nil && strings.HasPrefix(key, below) {
			docs = append(docs, Doc{Key: key, Value: text})
		}
	}
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.Key, b.Key) })
	return docs, nil
}

// noteRange records the revision at which a prefix was read.
func (t *Tx) noteRange(below string, revision int64) {
	if before, ok := t.ranges[below]; !ok || revision < before {
		t.ranges[below] = revision
	}
}

// MaxDocument is the size of the largest document, in bytes: an interface of 16,000 groups has 3 MB. It is chosen for Headgate: etcd keeps each change in
// memory until its next snapshot, and each controller and agent reads the document again.
const MaxDocument = 8 << 20

// DocumentTooLarge means that nothing was changed, because a document would be larger than MaxDocument.
type DocumentTooLarge struct{ Size int }

func (e *DocumentTooLarge) Error() string {
	return fmt.Sprintf("the document would have %d bytes, and at most %d are possible: make it smaller", e.Size, MaxDocument)
}

// Put writes a document.
func (t *Tx) Put(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode document %s: %w", key, err)
	}
	if len(text) > MaxDocument {
		return &DocumentTooLarge{len(text)}
	}
	t.write[key] = text
	return nil
}

// Size returns the size of a document that this transaction has written, in bytes.
func (t *Tx) Size(key string) int { return len(t.write[key]) }

// Change is a write of a transaction. Before is nil if the document did not exist, or was not read; After is nil if it is deleted.
type Change struct {
	Key           string
	Before, After []byte
}

// Changes returns the writes so far, sorted by key.
func (t *Tx) Changes() (all []Change) {
	for _, key := range slices.Sorted(maps.Keys(t.write)) {
		all = append(all, Change{key, t.read[key].value, t.write[key]})
	}
	return all
}

// Delete deletes a document.
func (t *Tx) Delete(key string) { t.write[key] = nil }

// save returns the writes so far, for restore.
func (t *Tx) save() map[string][]byte           { return maps.Clone(t.write) }
func (t *Tx) restore(written map[string][]byte) { t.write = written }

// commit writes the changes if nothing that was read has changed meanwhile; ok is false otherwise. A
// transaction without writes is committed, too, so that all its reads are consistent.
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
			ops = append(ops, clientv3.OpPut(key, string(withChecksum(key, text))))
		}
	}
	if len(ops) == 0 {
		ops = append(ops, clientv3.OpGet(EpochKey, clientv3.WithKeysOnly())) // a quorum read
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
		return fmt.Errorf("cannot decode document %s: %w", key, err)
	}
	return nil
}
