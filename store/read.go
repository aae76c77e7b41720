package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Doc is a document as it was at a revision of the store.
type Doc struct {
	Key      string
	Value    []byte
	Revision int64 // of its last change
}

// Into reads the document.
func (d Doc) Into(value any) error { return decode(d.Key, d.Value, value) }

// ErrCompacted means that the store does not remember that revision any more.
var ErrCompacted = errors.New("the store does not remember that far back")

// ErrFuture means that the store has not come to that revision yet.
var ErrFuture = errors.New("the store has no such revision yet")

// Get is a document as it is now, or as it was at a revision if that is not 0; ok is false if
// there is none. What is read is what was last written, whoever wrote it.
func (s *Store) Get(ctx context.Context, key string, at int64) (d Doc, ok bool, err error) {
	got, err := s.read(ctx, key, clientv3.WithRev(at))
	if err != nil {
		return d, false, readError(err)
	}
	if len(got.Kvs) == 0 {
		return d, false, nil
	}
	kv := got.Kvs[0]
	return Doc{string(kv.Key), kv.Value, kv.ModRevision}, true, nil
}

// List is up to so many documents, one at the least below a prefix, in the order of their keys, from the one behind
// a key on. More tells whether there are others behind them; revision is the store's, at which
// all this was so.
func (s *Store) List(ctx context.Context, below, after string, most int) (docs []Doc, more bool, revision int64, err error) {
	from := below
	if after > below {
		if !strings.HasPrefix(after, below) {
			return nil, false, 0, fmt.Errorf("%q is not below %q", after, below)
		}
		from = after + "\x00"
	}
	return s.page(ctx, below, from, most, 0)
}

// page is up to so many documents below a prefix from a key on, as they are now or were at a
// revision: fewer if they are more than one message has.
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
		docs = append(docs, Doc{string(kv.Key), kv.Value, kv.ModRevision})
	}
	return docs, got.More, got.Header.Revision, nil
}

// Event is a change of a document, or its end if its value is nil.
type Event struct {
	Doc
	Before []byte // nil if it was not there
}

// Watch tells of all changes below a prefix after a revision, in their order, a revision's in one
// call, until ctx ends or the store is lost. From before what the store remembers it is
// ErrCompacted. quiet is called now and then while nothing happens, with a revision up to which
// all was told.
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
		// One answer may have several revisions, each of them whole (no WithFragment).
		for i := 0; i < len(got.Events); {
			revision := got.Events[i].Kv.ModRevision
			var events []Event
			for ; i < len(got.Events) && got.Events[i].Kv.ModRevision == revision; i++ {
				e := got.Events[i]
				event := Event{Doc: Doc{Key: string(e.Kv.Key), Revision: revision}}
				if e.Type == clientv3.EventTypePut {
					event.Value = e.Kv.Value
				}
				if e.PrevKv != nil {
					event.Before = e.PrevKv.Value
				}
				events = append(events, event)
			}
			if err := changed(revision, events); err != nil {
				return err
			}
		}
	}
	if ctx.Err() == nil {
		return ErrUnknown
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
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// Backwards calls fn with the documents below a prefix from the last on, or from the one before a
// name, until it wants no more.
func (s *Store) Backwards(ctx context.Context, below, before string, fn func(Doc) (more bool, err error)) error {
	const page = 500
	end := clientv3.GetPrefixRangeEnd(below)
	if before != "" {
		end = below + before
	}
	for {
		got, err := s.read(ctx, below, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		if err != nil {
			return readError(err)
		}
		for _, kv := range got.Kvs {
			more, err := fn(Doc{string(kv.Key), kv.Value, kv.ModRevision})
			if err != nil || !more {
				return err
			}
			end = string(kv.Key)
		}
		if len(got.Kvs) < page {
			return nil
		}
	}
}

// mostNames are asked for at once.
const mostNames = 10_000

// Keys are those of the documents below a prefix, in order.
func (s *Store) Keys(ctx context.Context, below string) (keys []string, err error) {
	for from := below; ; {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(below)), clientv3.WithKeysOnly(), clientv3.WithLimit(mostNames),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
		if err != nil {
			return nil, readError(err)
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

// firstPage and mostPage are how many documents All asks for at once: at first, and of small ones.
// pageBytes is about what it wants of the others.
const firstPage, mostPage, pageBytes = 16, 1000, 8 << 20

// All is every document below a prefix, as it is now, or as it was at a revision, in the order of
// their keys; revision is that one, or the one that it is now. It is asked for in pages.
func (s *Store) All(ctx context.Context, below string, at int64) (docs []Doc, revision int64, err error) {
	revision = at
	for from, most := below, firstPage; ; {
		page, more, now, err := s.page(ctx, below, from, most, revision)
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = now
		}
		docs = append(docs, page...)
		if !more {
			return docs, revision, nil
		}
		size := 1
		for _, d := range page {
			size += len(d.Value)
		}
		from, most = page[len(page)-1].Key+"\x00", min(max(pageBytes*len(page)/size, 1), mostPage)
	}
}
