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

// Values chosen for Headgate.
const (
	// statusTimeout, compactTimeout and defragTimeout are the timeouts of a status request, a compaction
	// and a defragmentation, which may write gigabytes to a slow disk.
	statusTimeout  = 2 * time.Second
	compactTimeout = time.Minute
	defragTimeout  = 5 * time.Minute
	// auditBytes is the approximate size of an audit log entry. maxTrimmed is how many entries are deleted
	// at once, trimPage how many in one request: every watch receives each deletion.
	auditBytes = 512
	maxTrimmed = 20_000
	trimPage   = 500
)

// Space is how much of its quota an etcd member uses, in bytes.
type Space struct {
	// Size is the size of the database file, which etcd compares with the quota. InUse is the part of the
	// file that contains data.
	Size, InUse int64
	// Quota is 0 if the etcd does not report it.
	Quota int64
	// Full is whether the NOSPACE alarm is active: etcd rejects writes of all clients until the alarm is
	// disarmed.
	Full bool

	isLeader bool // the member is the leader of etcd
}

// Writable reports whether there is space for changes. The last eighth of the quota is reserved for the
// service itself: a full etcd does not even grant a lease for a leader.
func (r Space) Writable() bool { return !r.Full && (r.Quota == 0 || r.Size < r.Quota/8*7) }

// Space returns the space of the connected member.
func (s *Store) Space(ctx context.Context) (r Space, err error) {
	for _, url := range s.client.Endpoints() {
		if r, err = s.room(ctx, url); err == nil {
			return r, nil
		}
	}
	return r, err
}

func (s *Store) room(ctx context.Context, url string) (Space, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	got, err := s.client.Status(ctx, url)
	if err != nil {
		return Space{}, readError(err)
	}
	r := Space{Size: got.DbSize, InUse: got.DbSizeInUse, Quota: got.DbSizeQuota, isLeader: got.Leader == got.Header.MemberId}
	for _, e := range got.Errors {
		r.Full = r.Full || strings.Contains(e, pb.AlarmType_NOSPACE.String())
	}
	return r, nil
}

// maxCompactions bounds how often one Maintain halves the history.
const maxCompactions = 10

// Maintain keeps the store within its quota. Above half of the quota it compacts the older half of the history,
// defragments members whose files are mostly empty, and repeats this until half of the quota is free; then it
// disarms the alarm of a full store. It acts only if the connected member is the leader of etcd. There is one such
// member, also when the store is full and grants no lease for a leader of the controllers. An external etcd is
// left to its operator.
func (s *Store) Maintain(ctx context.Context) error {
	for range maxCompactions {
		own, err := s.Space(ctx)
		if err != nil || s.external || !own.isLeader || own.Quota == 0 {
			return err
		}
		compacted := false
		if own.InUse > own.Quota/2 {
			if compacted, err = s.compactHistory(ctx, own); err != nil {
				return fmt.Errorf("cannot compact the store: %w", err)
			}
			if own, err = s.Space(ctx); err != nil {
				return err
			}
		}
		defragmented, err := s.defragmentMembers(ctx, own.InUse, compacted)
		if err != nil || !compacted || !defragmented {
			return err // without a defragmentation etcd may report the space from before the compaction
		}
	}
	return nil
}

// defragmentMembers defragments the members that need it, and disarms the alarm of a full store if all have
// space. It reports whether it has defragmented any.
func (s *Store) defragmentMembers(ctx context.Context, inUse int64, compacted bool) (any bool, err error) {
	members, err := s.client.MemberList(ctx)
	if err != nil {
		return false, readError(err)
	}
	full, spacious := false, true
	for _, m := range members.Members {
		if len(m.ClientURLs) == 0 {
			continue // the member has not started yet
		}
		r, did, err := s.defragment(ctx, m.Name, m.ClientURLs[0], inUse, compacted)
		any = any || did
		if err != nil {
			slog.Debug("cannot maintain store member, skipping it", "member", m.Name, "error", err)
			continue // a disconnected member is maintained after its return
		}
		full, spacious = full || r.Full, spacious && r.Size < r.Quota/8*7
	}
	if full && spacious {
		err = s.disarm(ctx)
	}
	return any, err
}

// compactHistory compacts the older half of the history, if there is any, and deletes old audit log entries if they
// take more than a quarter of the quota.
func (s *Store) compactHistory(ctx context.Context, r Space) (compacted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	oldest, now, err := s.history(ctx)
	if err != nil {
		return false, err
	}
	if at := oldest + (now-oldest)/2; at > oldest {
		slog.Warn("store is more than half full, compacting the older half of its history", "in_use", r.InUse, "quota", r.Quota, "from_revision", oldest, "to_revision", at)
		if _, err := s.client.Compact(ctx, at, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return false, readError(err)
		}
		compacted = true
	}
	audit, err := s.client.Get(ctx, Prefix(Audit), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return compacted, readError(err)
	}
	over := min(audit.Count-r.Quota/4/auditBytes, maxTrimmed)
	if over <= 0 {
		return compacted, nil
	}
	slog.Warn("audit log takes more than a quarter of the store's quota, deleting its oldest entries", "entries", over, "total", audit.Count)
	return compacted, s.deleteFirst(ctx, Prefix(Audit), over)
}

// history returns the oldest revision that is not compacted, and the current one. etcd does not report
// the oldest one, so a binary search finds it.
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

// deleteFirst deletes the first documents below a prefix, up to most.
func (s *Store) deleteFirst(ctx context.Context, below string, most int64) error {
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

// defragment defragments a member if its file is large and has much free space, which etcd does not do by
// itself. The member answers no requests meanwhile. After a compaction etcd counts the freed pages only at a later
// write, and a full store has none: then a large file is defragmented whatever is reported as in use, of which
// inUse is the least that is known.
func (s *Store) defragment(ctx context.Context, name, url string, inUse int64, compacted bool) (r Space, did bool, err error) {
	r, err = s.room(ctx, url)
	r.InUse = min(r.InUse, inUse)
	if err != nil || r.Size <= r.Quota/4*3 || !compacted && r.Size-r.InUse < r.Quota/8 {
		return r, false, err
	}
	slog.Warn("defragmenting store member; it answers no requests until this has finished", "member", name, "size", r.Size, "in_use", r.InUse, "quota", r.Quota)
	defragmenting, cancel := context.WithTimeout(ctx, defragTimeout)
	defer cancel()
	if _, err := s.client.Defragment(defragmenting, url); err != nil {
		return r, false, readError(err)
	}
	r, err = s.room(ctx, url)
	return r, true, err
}

// disarm disarms the NOSPACE alarm, so that the store accepts changes again.
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
	slog.Warn("store was full and accepts changes again")
	return nil
}
