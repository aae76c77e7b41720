package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// keyCommand is the command that creates the shared key of a part, which each of its ends has.
func keyCommand(a *app, part, end string) *cobra.Command {
	c := &cobra.Command{
		Use:     "key FILE",
		Short:   fmt.Sprintf("Create the key that all ends of a %s share", part),
		Long:    fmt.Sprintf("Key writes a random key to a new file, which only its owner can read. Copy the file to each\n%s.", end),
		Example: fmt.Sprintf("  headgate %s key /etc/headgate/%[1]s.key", part),
		Args:    cobra.ExactArgs(1),
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, os.ErrExist):
			return fmt.Errorf("cannot create the key: %w: a key that exists is not replaced, because other %ss may have it; name another file, or remove this one", err, end)
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("cannot create the key: %w: create the directory with \"mkdir -p -m 700 %s\"", err, filepath.Dir(args[0]))
		case err != nil:
			return fmt.Errorf("cannot create the key: %w", err)
		}
		key := make([]byte, 32)
		rand.Read(key)
		_, err = fmt.Fprintln(f, hex.EncodeToString(key))
		if err = errors.Join(err, f.Close()); err == nil {
			a.note("wrote %s: copy it to each %s, readable by its owner alone", args[0], end)
		}
		return err
	}
	return c
}
