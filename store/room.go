package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ours.
const (
	// statusPatience is for a member to say how full it is, compactPatience to forget, packPatience to
	// write its file anew: gigabytes, on a slow disk.
	statusPatience  = 2 * time.Second
	compactPatience = time.Minute
	packPatience    = 5 * time.Minute
	// auditBytes is about what an entry of the audit log takes. mostTrimmed are taken away at a time,
	// trimPage in one request: whoever watches is told of each.
	auditBytes  = 512
	mostTrimmed = 20_000
	trimPage    = 500
)

// Room is how much of its quota a member of the etcd has used, in bytes.
type Room struct {
	// Size is its file's, which etcd holds against the quota; InUse is what of it has something in it.
	Size, InUse int64
	// Quota is 0 if the etcd does not say.
	Quota int64
	// Full is that the etcd takes nothing any more, of anybody, until somebody says that it may.
	Full bool

	leads bool // of the members
}

// Writable tells whether there is room for changes. The last eighth is left to what keeps the
// service going: a full etcd does not even grant a lease to a leader.
func (r Room) Writable() bool { return !r.Full && (r.Quota == 0 || r.Size < r.Quota/8*7) }

// Room is that of the member that is spoken to.
func (s *Store) Room(ctx context.Context) (r Room, err error) {
	for _, url := range s.client.Endpoints() {
		if r, err = s.room(ctx, url); err == nil {
			return r, nil
		}
	}
	return r, err
}

func (s *Store) room(ctx context.Context, url string) (Room, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	got, err := s.client.Status(ctx, url)
	if err != nil {
		return Room{}, readError(err)
	}
	r := Room{Size: got.DbSize, InUse: got.DbSizeInUse, Quota: got.DbSizeQuota, leads: got.Leader == got.Header.MemberId}
	for _, e := range got.Errors {
		r.Full = r.Full || strings.Contains(e, pb.AlarmType_NOSPACE.String())
	}
	return r, nil
}

// Tend keeps the store within its quota: above the half it forgets the older half of its history,
// and members whose files are mostly empty write them anew, after which a full store takes changes
// again. It does so only where the member that is spoken to leads the others: that is one, also when
// the store is full and has no lease for a leader. An etcd that is not the service's own is left to
// its owner.
func (s *Store) Tend(ctx context.Context) error {
	own, err := s.Room(ctx)
	if err != nil || s.foreign || !own.leads || own.Quota == 0 {
		return err
	}
	if own.InUse > own.Quota/2 {
		if err := s.forget(ctx, own); err != nil {
			return fmt.Errorf("the store cannot forget: %w", err)
		}
		if own, err = s.Room(ctx); err != nil {
			return err
		}
	}
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return readError(err)
	}
	full, roomy := false, true
	for _, m := range members.Members {
		if len(m.ClientURLs) == 0 {
			continue // it has not come yet
		}
		r, err := s.pack(ctx, m.Name, m.ClientURLs[0], own.InUse)
		if err != nil {
			slog.Debug("a member of the store is not looked after", "member", m.Name, "error", err)
			continue // it is away, and is looked after when it is back
		}
		full, roomy = full || r.Full, roomy && r.Size < r.Quota/8*7
	}
	if !full || !roomy {
		return nil
	}
	return s.disarm(ctx)
}

// forget forgets the older half of the history, and audit entries if these are much of what there is.
func (s *Store) forget(ctx context.Context, r Room) error {
	ctx, cancel := context.WithTimeout(ctx, compactPatience)
	defer cancel()
	oldest, now, err := s.history(ctx)
	if err != nil {
		return err
	}
	if at := oldest + (now-oldest)/2; at > oldest {
		slog.Warn("the store is more than half full, and forgets the older half of its history", "in use", r.InUse, "quota", r.Quota, "from", oldest, "to", at)
		if _, err := s.client.Compact(ctx, at, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return readError(err)
		}
	}
	audit, err := s.client.Get(ctx, Prefix(Audit), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return readError(err)
	}
	over := min(audit.Count-r.Quota/4/auditBytes, mostTrimmed)
	if over <= 0 {
		return nil
	}
	slog.Warn("the audit log takes more than a quarter of the store, and its oldest entries are taken away", "entries", over, "of", audit.Count)
	return s.trim(ctx, Prefix(Audit), over)
}

// history is from the oldest revision that is remembered to the newest. etcd does not tell the first.
func (s *Store) history(ctx context.Context) (oldest, newest int64, err error) {
	got, err := s.client.Get(ctx, EpochKey)
	if err != nil {
		return 0, 0, readError(err)
	}
	newest = got.Header.Revision
	n := sort.Search(int(newest-1), func(n int) bool {
		if err != nil {
			return true
		}
		_, gone := s.client.Get(ctx, EpochKey, clientv3.WithRev(int64(n)+1), clientv3.WithSerializable(), clientv3.WithKeysOnly())
		if errors.Is(gone, rpctypes.ErrCompacted) {
			return false
		}
		err = gone
		return true
	})
	if err != nil {
		return 0, 0, readError(err)
	}
	return int64(n) + 1, newest, nil
}

// trim takes away the first so many documents below a prefix.
func (s *Store) trim(ctx context.Context, below string, most int64) error {
	for most > 0 {
		got, err := s.client.Get(ctx, below, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(min(most, trimPage)))
		if err != nil {
			return readError(err)
		}
		if len(got.Kvs) == 0 {
			return nil
		}
		behind := string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		if _, err := s.client.Delete(ctx, below, clientv3.WithRange(behind)); err != nil {
			return readError(err)
		}
		most -= int64(len(got.Kvs))
	}
	return nil
}

// pack has a member write its file anew if it is large and much of it is empty, which etcd does not
// do by itself. The member answers nobody meanwhile. All members have the same in use, which only the
// one that was asked to forget says at once: others count at their next write, and a full store has none.
func (s *Store) pack(ctx context.Context, name, url string, inUse int64) (Room, error) {
	r, err := s.room(ctx, url)
	if r.InUse = min(r.InUse, inUse); err != nil || r.Size <= r.Quota/4*3 || r.Size-r.InUse < r.Quota/8 {
		return r, err
	}
	slog.Warn("a member of the store writes its file anew, without what was forgotten, and answers nobody meanwhile", "member", name, "size", r.Size, "in use", r.InUse, "quota", r.Quota)
	packing, cancel := context.WithTimeout(ctx, packPatience)
	defer cancel()
	if _, err := s.client.Defragment(packing, url); err != nil {
		return r, readError(err)
	}
	return s.room(ctx, url)
}

// disarm has a store that was full take changes again.
func (s *Store) disarm(ctx context.Context) error {
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return readError(err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
			return readError(err)
		}
	}
	slog.Warn("the store was full, and takes changes again")
	return nil
}
