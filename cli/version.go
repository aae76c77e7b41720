package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the release build (-ldflags "-X headgate.dev/headgate/cli.version=1.2.3").
var version = "dev"

func versionCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  headgate version -o json",
		Args:    cobra.NoArgs,
	}
	output := outputFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := thisVersion()
		return a.print(*output, v, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, v)
			return err
		})
	}
	return c
}

// programVersion is what is known of this program's build.
type programVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() programVersion {
	v := programVersion{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	return v
}

func (v programVersion) String() string {
	return fmt.Sprintf("headgate %s %s (%s, %s)", v.Version, v.Revision, v.Go, v.Platform)
}
