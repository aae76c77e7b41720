package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/store"
	"headgate/store/etcd"
)

func controllerBackupCommand(a *app) *cobra.Command {
	r := controllerRun{listen: "127.0.0.1"}
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that a running controller's store has to a file",
		Long: `Backup writes everything that the service knows to a new file, on a controller's machine and
while it runs. The service's authority is in it: whoever has the file can be the service.`,
		Example: `  headgate controller backup /backup/headgate-2026-11-23
  headgate controller backup -f controllers.yaml --name c2 /backup/headgate`,
		Args: cobra.ExactArgs(1),
	}
	r.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		if r.etcd.asked() {
			return usageError{fmt.Errorf("an etcd that is not the controller's own has what is others', too: back it up with \"etcdctl --endpoints %s snapshot save %s\"", strings.Join(r.etcd.urls, ","), args[0]), c.CommandPath()}
		}
		s, err := r.open(c.Context())
		if err != nil {
			return err
		}
		defer s.Close()
		size, err := backup(c.Context(), s, args[0])
		if err != nil {
			return err
		}
		a.note("%s: %s", args[0], sizeText(float64(size)))
		return nil
	}
	return c
}

// open is the store of a controller that runs.
func (r *controllerRun) open(ctx context.Context) (*store.Store, error) {
	m, err := etcd.Read(r.member().Dir)
	if err != nil {
		return nil, fmt.Errorf("%s is no folder of a controller: %w", r.dir, err)
	}
	tls, err := m.TLS()
	if err != nil {
		return nil, fmt.Errorf("%s is no folder of a controller: %w", r.dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	return store.Open(ctx, store.Endpoint{URLs: []string{m.URL()}, TLS: tls})
}

// openPatience is for a store that is there already.
const openPatience = 10 * time.Second

// backup writes a new file, whole or not at all.
func backup(ctx context.Context, s *store.Store, file string) (size int64, err error) {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return 0, errors.Join(fmt.Errorf("%s is there already: name a new file", file), err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	err = s.Backup(ctx, f)
	if err == nil {
		size, err = f.Seek(0, 1)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, os.Link(f.Name(), file)
}

func controllerRestoreCommand(a *app) *cobra.Command {
	r := controllerRun{listen: "127.0.0.1"}
	c := &cobra.Command{
		Use:   "restore FILE | --etcd URL",
		Short: "Make a controller's folder from a backup",
		Long: `Restore makes a new folder for a controller from a file that "headgate controller backup" has
written; it is then started as ever. Of several controllers all are ended, and each is restored
from the same file, into a folder that "headgate controller prepare" has made: a backup does not
have what lets them trust each other. What was changed after the backup is gone, and hosts are
given what was wanted then as soon as they find a controller.

An etcd that is not the controller's own (--etcd) is restored with its own tools, while all
controllers are ended: "etcdutl snapshot restore FILE --bump-revision 1000000000
--mark-compacted". Then, and once, "headgate controller restore --etcd URL" without a file has
hosts obey what is in it.`,
		Example: `  headgate controller restore /backup/headgate --data ./controller
  headgate controller restore /backup/headgate -f controllers.yaml --name c2
  headgate controller restore --etcd https://10.0.0.5:2379 --etcd-ca ca.pem --etcd-cert headgate.pem --etcd-key headgate.key`,
		Args: cobra.MaximumNArgs(1),
	}
	r.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		switch {
		case r.etcd.asked() && len(args) > 0:
			return usageError{fmt.Errorf("an etcd that is not the controller's own is restored with its own tools: end all controllers, run \"etcdutl snapshot restore %s --bump-revision 1000000000 --mark-compacted\" for each member, start these, and then \"headgate controller restore %s\"", args[0], r.etcd.again()), c.CommandPath()}
		case r.etcd.asked():
			return a.restoredOutside(c.Context(), &r.etcd)
		case len(args) == 0:
			return usageError{errors.New("write the file of a backup"), c.CommandPath()}
		}
		if _, err := os.Stat(args[0]); err != nil {
			return err
		}
		err := r.member().Restore(args[0])
		if errors.Is(err, etcd.ErrThere) {
			return fmt.Errorf("%w: end the controller and move that away, or name another --data", err)
		}
		if errors.Is(err, etcd.ErrUnprepared) {
			return r.unprepared(err)
		}
		if err != nil {
			return err
		}
		a.note("%s has what %s has: start the controller", r.dir, args[0])
		return nil
	}
	return c
}

// unprepared says what to do about a folder in which several controllers do not trust each other.
func (r *controllerRun) unprepared(err error) error {
	return fmt.Errorf("%w: run \"headgate controller prepare -f %s --to DIR\" once, copy each folder to its machine, and name it with --data", err, strings.Join(*r.files, " -f "))
}

// restored has a store that comes from a backup begin a new epoch.
func restored(ctx context.Context, s *store.Store, m etcd.Member) error {
	id, told, err := m.Restored()
	if err != nil || id == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := s.Restored(ctx, id); err != nil {
		return err
	}
	return told()
}

func controllerReplaceCommand(a *app) *cobra.Command {
	var r controllerRun
	c := &cobra.Command{
		Use:   "replace-member NAME -f FILE --to DIR",
		Short: "Take a lost controller out, and make the folder of the one in its place",
		Long: `Replace-member has the other controllers forget one that is lost with its folder, and makes
the folder of the one that comes in its place, of the same name and address. It runs on the
machine of a controller that is there. Copy the folder, and start the new controller with it.`,
		Example: `  headgate controller replace-member c3 -f controllers.yaml --name c1 --to ./c3`,
		Args:    cobra.ExactArgs(1),
	}
	r.flags(c)
	to := c.Flags().String("to", "", "make the folder here: a new `DIR`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		if r.etcd.asked() {
			return usageError{errors.New("members of an etcd that is not the controllers' own are replaced with its own tools (\"etcdctl member remove\", \"etcdctl member add\"); a controller with --etcd has nothing that could be lost"), c.CommandPath()}
		}
		if *to == "" || len(*r.files) == 0 {
			return usageError{errors.New("write -f and the file of the controllers, and --to and a directory"), c.CommandPath()}
		}
		m := r.member()
		address, known := m.Peers[args[0]]
		if !known || args[0] == r.name {
			return usageError{fmt.Errorf("%s is none of the other controllers in %s", args[0], r.controllers.File), c.CommandPath()}
		}
		ctx, cancel := context.WithTimeout(c.Context(), openPatience)
		defer cancel()
		if err := m.Replace(ctx, args[0], filepath.Join(*to, "store")); err != nil {
			return err
		}
		a.note("%s: copy it to %s and start \"headgate controller -f %s --name %s --data DIR\" there", *to, address, (*r.files)[0], args[0])
		return nil
	}
	return c
}
