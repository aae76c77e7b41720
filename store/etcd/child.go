package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// Child is what the child does: it runs the member that a file describes until its standard input
// ends.
func Child(file string) error {
	m, err := read(file)
	if err != nil {
		return fmt.Errorf("the store's member cannot be read: %w", err)
	}
	c, err := m.config()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("the store does not begin: %w", err)
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
		return errors.New("the store has stopped by itself")
	}
}
