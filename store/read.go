package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Doc is a document at a revision of the store.
type Doc struct {
	Key      string
	Value    []byte
	Revision int64 // revision of its last change
}

// Into decodes the document.
func (d Doc) Into(value any) error { return decode(d.Key, d.Value, value) }

// ErrCompacted means that etcd has compacted the requested revision.
var ErrCompacted = errors.New("the revision is compacted: the store no longer has it")

// ErrFuture means that the store has not reached the requested revision yet.
var ErrFuture = errors.New("the revision does not exist yet")

// Get returns a document as it is now, or at a revision if at is not 0; ok is false if the document
// does not exist. The read is linearizable: it returns the last write of any client.
func (s *Store) Get(ctx context.Context, key string, at int64) (d Doc, ok bool, err error) {
	got, err := s.read(ctx, key, clientv3.WithRev(at))
	if err != nil {
		return d, false, readError(err)
	}
	if len(got.Kvs) == 0 {
		return d, false, nil
	}
	kv := got.Kvs[0]
	d, err = docOf(kv)
	return d, err == nil, err
}

// List returns at least one and at most most documents below a prefix, sorted by key, starting after
// the key after. more reports whether further documents follow. revision is the store's revision of
// the read.
func (s *Store) List(ctx context.Context, below, after string, most int) (docs []Doc, more bool, revision int64, err error) {
	from := below
	if after > below {
		if !strings.HasPrefix(after, below) {
			return nil, false, 0, fmt.Errorf("key %q does not have the prefix %q", after, below)
		}
		from = after + "\x00"
	}
	return s.page(ctx, below, from, most, 0)
}

// page returns up to most documents below a prefix from a key on, as they are now or at a revision. It
// returns fewer if they exceed the size of one message.
func (s *Store) page(ctx context.Context, below, from string, most int, at int64) (docs []Doc, more bool, revision int64, err error) {
	got, err := s.read(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(below)), clientv3.WithLimit(int64(most)),
		clientv3.WithRev(at), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	if status.Code(err) == codes.ResourceExhausted && most > 1 {
		return s.page(ctx, below, from, (most+3)/4, at)
	}
	if err != nil {
		return nil, false, 0, readError(err)
	}
	for _, kv := range got.Kvs {
		d, err := docOf(kv)
		if err != nil {
			return nil, false, 0, err
		}
		docs = append(docs, d)
	}
	return docs, got.More, got.Header.Revision, nil
}

// docOf returns a document as it was written, or ErrDamaged.
func docOf(kv *mvccpb.KeyValue) (d Doc, err error) {
	d = Doc{Key: string(kv.Key), Revision: kv.ModRevision}
	d.Value, err = withoutChecksum(d.Key, kv.Value)
	return d, err
}

// Event is a change of a document; a nil value is its deletion.
type Event struct {
	Doc
	Before []byte // nil if the document did not exist
}

// Watch calls changed for all changes below a prefix after a revision, in order, one call for each
// revision, until ctx ends or the connection is lost. It returns ErrCompacted if the revision is
// compacted. quiet is called from time to time without changes, with a revision up to which all
// changes were delivered.
func (s *Store) Watch(ctx context.Context, below string, after int64, changed func(revision int64, events []Event) error, quiet func(revision int64) error) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for got := range s.client.Watch(ctx, below, clientv3.WithPrefix(), clientv3.WithRev(after+1), clientv3.WithPrevKV(), clientv3.WithProgressNotify()) {
		if err := got.Err(); err != nil {
			return readError(err)
		}
		if got.IsProgressNotify() {
			if err := quiet(got.Header.Revision); err != nil {
				return err
			}
			continue
		}
		// One response may contain several revisions, each of them complete (no WithFragment).
		for i := 0; i < len(got.Events); {
			revision := got.Events[i].Kv.ModRevision
			var events []Event
			for ; i < len(got.Events) && got.Events[i].Kv.ModRevision == revision; i++ {
				e := got.Events[i]
				event := Event{Doc: Doc{Key: string(e.Kv.Key), Revision: revision}}
				var damaged error
				if e.Type == clientv3.EventTypePut {
					event.Doc, damaged = docOf(e.Kv)
				}
				if e.PrevKv != nil && damaged == nil {
					event.Before, damaged = withoutChecksum(event.Key, e.PrevKv.Value)
				}
				if damaged != nil {
					return damaged
				}
				events = append(events, event)
			}
			if err := changed(revision, events); err != nil {
				return err
			}
		}
	}
	if ctx.Err() == nil {
		return ErrUnavailable
	}
	return ctx.Err()
}

func readError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return ErrFuture
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Descending calls fn with the documents below a prefix in descending order of their keys, from the
// last one or from the one before a name, until fn returns false.
func (s *Store) Descending(ctx context.Context, below, before string, fn func(Doc) (more bool, err error)) error {
	const largest = 500
	page := int64(largest)
	end := clientv3.GetPrefixRangeEnd(below)
	if before != "" {
		end = below + before
	}
	for {
		got, err := s.read(ctx, below, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		if status.Code(err) == codes.ResourceExhausted && page > 1 {
			page = (page + 3) / 4
			continue
		}
		if err != nil {
			return readError(err)
		}
		for _, kv := range got.Kvs {
			d, err := docOf(kv)
			if err != nil {
				return err
			}
			more, err := fn(d)
			if err != nil || !more {
				return err
			}
			end = string(kv.Key)
		}
		if !got.More {
			return nil
		}
	}
}

// keysPage is how many keys one request reads.
const keysPage = 10_000

// Keys returns the keys of the documents below a prefix, sorted.
func (s *Store) Keys(ctx context.Context, below string) (keys []string, err error) {
	var revision int64 // of the first page, which all others are of
	for from := below; ; {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(below)), clientv3.WithKeysOnly(), clientv3.WithLimit(keysPage), clientv3.WithRev(revision),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
		if err != nil {
			return nil, readError(err)
		}
		if revision == 0 {
			revision = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			keys = append(keys, string(kv.Key))
		}
		if !got.More {
			return keys, nil
		}
		from = keys[len(keys)-1] + "\x00"
	}
}

// ByAge returns the documents below a prefix without their values, the oldest change first.
func (s *Store) ByAge(ctx context.Context, below string) (docs []Doc, err error) {
	got, err := s.client.Get(ctx, below, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil {
		return nil, readError(err)
	}
	for _, kv := range got.Kvs {
		docs = append(docs, Doc{Key: string(kv.Key), Revision: kv.ModRevision})
	}
	return docs, nil
}

// firstPage is how many documents each reads with its first request, maxPage the most of later
// requests. pageBytes is the size in bytes that each aims at for a page.
const firstPage, maxPage, pageBytes = 16, 1000, 8 << 20

// All returns every document below a prefix, sorted by key, as they are now or at a revision. The
// returned revision is the one of the read. All reads in pages.
func (s *Store) All(ctx context.Context, below string, at int64) (docs []Doc, revision int64, err error) {
	revision, err = s.each(ctx, below, at, func(d Doc) error {
		docs = append(docs, d)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return docs, revision, nil
}

// each calls take for every document below a prefix, as All returns them, until take returns an error.
func (s *Store) each(ctx context.Context, below string, at int64, take func(Doc) error) (revision int64, err error) {
	revision = at
	for from, most := below, firstPage; ; {
		page, more, now, err := s.page(ctx, below, from, most, revision)
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = now
		}
		size := 1
		for _, d := range page {
			size += len(d.Value)
			if err := take(d); err != nil {
				return 0, err
			}
		}
		if !more {
			return revision, nil
		}
		from, most = page[len(page)-1].Key+"\x00", min(max(pageBytes*len(page)/size, 1), maxPage)
	}
}
