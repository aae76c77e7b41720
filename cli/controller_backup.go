package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	controllerservice "headgate.dev/headgate/controller/service"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/store/backend"
	"headgate.dev/headgate/store/etcd"
)

func controllerBackupCommand(a *app) *cobra.Command {
	r := controllerOptions{Options: controllerservice.Options{Listen: "127.0.0.1"}}
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the store of a running controller to a file",
		Long: `Backup writes the service's whole store to a new file. It runs on a controller's machine,
while the controller is running. The file contains the private key of the service's
certificate authority: keep the file secret, because it allows to impersonate the service.`,
		Example: `  headgate controller backup /backup/headgate-2026-11-23
  headgate controller backup -f controllers.yaml --name c2 /backup/headgate`,
		Args: cobra.ExactArgs(1),
	}
	r.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		if r.etcd.configured() {
			return usageError{fmt.Errorf("backup is not supported with --etcd, because that etcd may have data of other programs: back it up with \"etcdctl --endpoints %s snapshot save %s\"", strings.Join(r.etcd.urls, ","), args[0]), c.CommandPath()}
		}
		s, err := backend.Connect(c.Context(), r.Dir)
		if err != nil {
			return err
		}
		defer s.Close()
		size, err := backend.Backup(c.Context(), s, args[0])
		if err != nil {
			return err
		}
		a.note("%s: %s", args[0], probe.FormatBytes(float64(size)))
		return nil
	}
	return c
}

func controllerRestoreCommand(a *app) *cobra.Command {
	r := controllerOptions{Options: controllerservice.Options{Listen: "127.0.0.1"}}
	c := &cobra.Command{
		Use:   "restore FILE | --etcd URL",
		Short: "Create a controller's data directory from a backup",
		Long: `Restore creates a new data directory from a file that "headgate controller backup" has
written; then start the controller as usual. With several controllers, stop all of them and
restore each from the same file, into a directory that "headgate controller prepare" has
created: a backup does not contain the certificates with which the controllers trust each
other. Changes made after the backup are lost, and hosts receive the restored desired state
when they connect to a controller.

Tokens and hosts that were revoked after the backup are valid in it. So all tokens and hosts
of the backup are refused until an operator confirms them with "headgate controller
confirm-restore", or --confirmed is given. Hosts keep enforcing what they have. The controller creates an operator
token when it starts, as at its first start.

Restore an external etcd (--etcd) with its own tools, while all controllers are stopped:
"etcdutl snapshot restore FILE --bump-revision 1000000000 --mark-compacted". Then run
"headgate controller restore --etcd URL" without a file once, so that hosts accept the
restored state.`,
		Example: `  headgate controller restore /backup/headgate --data ./controller
  headgate controller restore /backup/headgate -f controllers.yaml --name c2
  headgate controller restore --etcd https://10.0.0.5:2379 --etcd-ca ca.pem --etcd-cert headgate.pem --etcd-key headgate.key`,
		Args: cobra.MaximumNArgs(1),
	}
	r.flags(c)
	confirmed := c.Flags().Bool("confirmed", false, "permit all tokens and hosts of the backup: none was revoked since, because the service was stopped after it")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		switch {
		case r.etcd.configured() && len(args) > 0:
			return usageError{fmt.Errorf("restore of a file is not supported with --etcd: stop all controllers, run \"etcdutl snapshot restore %s --bump-revision 1000000000 --mark-compacted\" for each member, start the members, and then run \"headgate controller restore %s\"", args[0], r.etcd.commandLine()), c.CommandPath()}
		case r.etcd.configured():
			return a.restoreExternalEtcd(c.Context(), &r)
		case len(args) == 0:
			return usageError{errors.New("backup file is missing: give its name as the argument"), c.CommandPath()}
		}
		if _, err := os.Stat(args[0]); err != nil {
			return err
		}
		err := r.Member().Restore(args[0], *confirmed)
		if errors.Is(err, etcd.ErrDataExists) {
			return fmt.Errorf("%w: stop the controller and move the directory away, or set another --data", err)
		}
		if errors.Is(err, etcd.ErrNoAuthority) {
			return r.withPrepareRemedy(err)
		}
		if err != nil {
			return err
		}
		a.note("restored %s from %s: start the controller", r.Dir, args[0])
		if *confirmed {
			return nil
		}
		a.note("its tokens and hosts are refused until \"headgate controller confirm-restore\", because some may have been revoked since the backup")
		return nil
	}
	return c
}

// withPrepareRemedy adds the remedy to the error of a data directory without the controllers' certificates.
func (r *controllerOptions) withPrepareRemedy(err error) error {
	return fmt.Errorf("%w: run \"headgate controller prepare -f %s --to DIR\" once, copy each directory to its machine, and set --data to it", err, strings.Join(*r.files, " -f "))
}

func controllerReplaceCommand(a *app) *cobra.Command {
	var r controllerOptions
	c := &cobra.Command{
		Use:   "replace-member NAME -f FILE --to DIR",
		Short: "Replace a lost controller's member of the store, and create its data directory",
		Long: `Replace-member removes the member of a controller whose data directory is lost from the
store, and creates the data directory of its replacement, which has the same name and
address. It runs on the machine of a working controller. Copy the directory, and start the
new controller with it.`,
		Example: `  headgate controller replace-member c3 -f controllers.yaml --name c1 --to ./c3`,
		Args:    cobra.ExactArgs(1),
	}
	r.flags(c)
	to := c.Flags().String("to", "", "create the data directory as this new `DIR`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		if r.etcd.configured() {
			return usageError{errors.New("replace-member is not supported with --etcd: use \"etcdctl member remove\" and \"etcdctl member add\"; a controller with --etcd is no member of the store"), c.CommandPath()}
		}
		if *to == "" || len(*r.files) == 0 {
			return usageError{errors.New("-f or --to is missing: set -f to the file of the controllers and --to to a directory"), c.CommandPath()}
		}
		m := r.Member()
		address, known := m.Peers[args[0]]
		if !known || args[0] == r.Name {
			return usageError{fmt.Errorf("%s is not another controller in %s", args[0], r.Controllers.File), c.CommandPath()}
		}
		if err := backend.ReplaceMember(c.Context(), m, args[0], *to); err != nil {
			return err
		}
		a.note("%s: copy it to %s and start \"headgate controller -f %s --name %s --data DIR\" there", *to, address, (*r.files)[0], args[0])
		return nil
	}
	return c
}
