// Command nfpm builds a Debian package from a configuration into a directory: nfpm CONFIG DIR. It is
// goreleaser's nfpm with only the Debian packager. It is a separate module, so that its dependencies are not
// dependencies of Headgate.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: nfpm CONFIG DIR")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "nfpm:", err)
		os.Exit(1)
	}
}

// pack builds the package of a configuration file in dir.
func pack(config, dir string) error {
	c, err := nfpm.ParseFile(config)
	if err != nil {
		return err
	}
	info, err := c.Get("deb")
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.Target = filepath.Join(dir, deb.Default.ConventionalFileName(info))
	f, err := os.Create(info.Target)
	if err != nil {
		return err
	}
	return errors.Join(deb.Default.Package(info, f), f.Close())
}
