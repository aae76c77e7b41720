package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// revisionBump is added to the revision at a restore, and all earlier revisions are marked compacted. Changes
// after the backup had revisions, too, and a client that has seen these revisions must not see them
// reused. The value is chosen for Headgate: a thousand changes a second for eleven days.
const revisionBump = 1e9

// ErrDataExists means that a member's directory already has data.
var ErrDataExists = errors.New("store data already exists")

// ErrNoAuthority means that the directory of one of several members does not have the certificate
// authority that they share. A backup does not include the authority; each member would create its own.
var ErrNoAuthority = errors.New("the store's certificate authority, which all members share, is missing")

// Restore creates the member's data from a backup (store.Backup). All members must be restored from the
// same backup, and form a new cluster. confirmed permits its tokens and hosts (store.Restore).
func (m Member) Restore(backup string, confirmed bool) error {
	if _, err := os.Stat(m.DataDir()); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w", m.DataDir(), ErrDataExists), err)
	}
	if len(m.Peers) > 1 && !m.Prepared() {
		return fmt.Errorf("%s: %w", m.Dir, ErrNoAuthority)
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return err
	}
	pending, err := identify(backup)
	if err != nil {
		return err
	}
	if confirmed {
		pending += confirmedSuffix
	}
	if err := write(filepath.Join(m.Dir, restoredFile), []byte(pending)); err != nil {
		return err
	}
	// An interrupted restore leaves no data directory.
	fresh := m.DataDir() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: backup, Name: m.Name, OutputDataDir: fresh, PeerURLs: []string{m.PeerURL(m.Name)},
		InitialCluster: m.cluster(), InitialClusterToken: clusterToken,
		RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("cannot restore backup %s: %w", backup, err)
	}
	return os.Rename(fresh, m.DataDir())
}

// identify returns the id of the restore of a backup: its hash, because all members of a cluster restore the same file, which is one restore.
func identify(backup string) (string, error) {
	f, err := os.Open(backup)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// restoredFile has the id of a restore, with confirmedSuffix if an operator has confirmed it already.
const restoredFile, confirmedSuffix = "restored", " confirmed"

// PendingRestore returns the id of a restore for which store.Restored was not called yet, "" if there is
// none, and whether it was confirmed. The caller calls done after store.Restored succeeded.
func (m Member) PendingRestore() (id string, confirmed bool, done func() error, err error) {
	file := filepath.Join(m.Dir, restoredFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil, nil
	}
	id, confirmed = strings.CutSuffix(string(text), confirmedSuffix)
	return id, confirmed, func() error { return os.Remove(file) }, err
}

// Replace removes a member from the cluster and adds a new one with the same name and address. It
// prepares the directory of the new member.
func (m Member) Replace(ctx context.Context, name, dir string) error {
	fresh := m
	fresh.Name, fresh.Dir = name, dir
	if _, err := os.Stat(fresh.DataDir()); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w", fresh.DataDir(), ErrDataExists), err)
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
		return fmt.Errorf("cannot list the store's members: %w", err)
	}
	for _, member := range all.Members {
		// A member that has not started yet has no name.
		if member.Name != name && strings.Join(member.PeerURLs, " ") != m.PeerURL(name) {
			continue
		}
		if _, err := c.MemberRemove(ctx, member.ID); err != nil {
			return fmt.Errorf("cannot remove member %s: %w", name, err)
		}
	}
	for {
		_, err := c.MemberAdd(ctx, []string{m.PeerURL(name)})
		if err == nil {
			return nil
		}
		// For some seconds after the removal etcd reports the remaining members as unhealthy.
		if !errors.Is(err, rpctypes.ErrUnhealthy) || ctx.Err() != nil {
			return fmt.Errorf("cannot add new member %s: %w: try again", name, err)
		}
		time.Sleep(time.Second / 4)
	}
}

// joiningFile marks a directory whose member joins an existing cluster. etcd ignores the setting once
// the member has data.
const joiningFile = "joining"

func (m Member) joining() bool {
	_, err := os.Stat(filepath.Join(m.Dir, joiningFile))
	return err == nil
}
