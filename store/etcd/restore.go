package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// bump is added to the revision at a restore, and all before it is forgotten: what was written
// after the backup had revisions, too, and whoever has seen them must not meet them again. Ours:
// a thousand changes a second for eleven days.
const bump = 1e9

// ErrThere means that a member's folder has data.
var ErrThere = errors.New("there is data of a store already")

// ErrUnprepared means that a folder of one of several members has no authority that they share. A
// backup has none: it would be another on each machine.
var ErrUnprepared = errors.New("the store's authority, which all members share, is not there")

// Restore makes the member's data from a backup (store.Backup). All members are restored from the
// same, and begin a cluster of their own.
func (m Member) Restore(backup string) error {
	if _, err := os.Stat(m.DataDir()); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w", m.DataDir(), ErrThere), err)
	}
	if len(m.Peers) > 1 && !m.Prepared() {
		return fmt.Errorf("%s: %w", m.Dir, ErrUnprepared)
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	if err := write(filepath.Join(m.Dir, restoredFile), []byte(rand.Text())); err != nil {
		return err
	}
	// A restore that is cut off leaves nothing that looks like data.
	fresh := m.DataDir() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: backup, Name: m.Name, OutputDataDir: fresh, PeerURLs: []string{m.PeerURL(m.Name)},
		InitialCluster: m.cluster(), InitialClusterToken: clusterToken,
		RevisionBump: bump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("the backup %s cannot be restored: %w", backup, err)
	}
	return os.Rename(fresh, m.DataDir())
}

const restoredFile = "restored"

// Restored is the name of the restore that has not been told to the store yet (store.Restored), ""
// if there is none; told is to be called when it has been.
func (m Member) Restored() (id string, told func() error, err error) {
	file := filepath.Join(m.Dir, restoredFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, nil
	}
	return string(text), func() error { return os.Remove(file) }, err
}

// Replace has the others forget a member, and take in one of the same name and address that comes
// with a folder which is made for it here.
func (m Member) Replace(ctx context.Context, name, dir string) error {
	fresh := m
	fresh.Name, fresh.Dir = name, dir
	if _, err := os.Stat(fresh.DataDir()); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w", fresh.DataDir(), ErrThere), err)
	}
	if err := errors.Join(m.Copy(dir), fresh.Prepare(), write(filepath.Join(dir, joiningFile), nil)); err != nil {
		return err
	}
	tls, err := m.TLS()
	if err != nil {
		return err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.URL()}, TLS: tls, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("the members of the store cannot be told: %w", err)
	}
	for _, member := range all.Members {
		// One that has not come yet has no name.
		if member.Name != name && strings.Join(member.PeerURLs, " ") != m.PeerURL(name) {
			continue
		}
		if _, err := c.MemberRemove(ctx, member.ID); err != nil {
			return fmt.Errorf("the member %s cannot be taken out: %w", name, err)
		}
	}
	for {
		_, err := c.MemberAdd(ctx, []string{m.PeerURL(name)})
		if err == nil {
			return nil
		}
		// For some seconds after one has gone the others are not sure of each other.
		if !errors.Is(err, rpctypes.ErrUnhealthy) || ctx.Err() != nil {
			return fmt.Errorf("the new member %s cannot be taken in: %w; try again", name, err)
		}
		time.Sleep(time.Second / 4)
	}
}

// joiningFile says of a folder that its member comes to others which are there already. Once it
// has data etcd does not ask any more.
const joiningFile = "joining"

func (m Member) joining() bool {
	_, err := os.Stat(filepath.Join(m.Dir, joiningFile))
	return err == nil
}
