package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// List is the documents below a prefix, by their keys, with what this transaction has written. As with
// Keys, somebody who adds or changes one meanwhile makes it be tried again, and somebody who removes
// one does not: it is one comparison, however many there are.
func (t *Tx) List(below string) ([]Doc, error) {
	got, err := t.store.client.Get(t.ctx, below, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if before, ok := t.ranges[below]; !ok || got.Header.Revision < before {
		t.ranges[below] = got.Header.Revision
	}
	var docs []Doc
	for _, kv := range got.Kvs {
		if _, written := t.write[string(kv.Key)]; !written {
			docs = append(docs, Doc{string(kv.Key), kv.Value, kv.ModRevision})
		}
	}
	for key, text := range t.write {
		if text != nil && strings.HasPrefix(key, below) {
			docs = append(docs, Doc{Key: key, Value: text})
		}
	}
	slices.SortFunc(docs, func(a, b Doc) int { return cmp.Compare(a.Key, b.Key) })
	return docs, nil
}
