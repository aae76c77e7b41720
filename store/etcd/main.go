package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/embed"

	"headgate.dev/headgate/internal/listen"
)

// RunChild is the main function of the child process: it runs the member that a file describes until
// standard input ends.
func RunChild(file string) error {
	m, err := read(file)
	if err != nil {
		return fmt.Errorf("cannot read the member's configuration: %w", err)
	}
	c, err := m.config()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("cannot start etcd: %w", listen.Remedy(err, "the port store or peers in a document of kind: Controllers"))
	}
	defer e.Close()
	parent := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(parent)
	}()
	select {
	case <-parent:
		return nil
	case err := <-e.Err():
		return err
	case <-e.Server.StopNotify():
		return errors.New("etcd stopped unexpectedly")
	}
}
