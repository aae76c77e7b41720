package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/controller"
	controllerservice "headgate.dev/headgate/controller/service"
	"headgate.dev/headgate/store/backend"
)

func controllerPinCommand(a *app) *cobra.Command {
	r := controllerOptions{Options: controllerservice.Options{Listen: "127.0.0.1"}}
	c := &cobra.Command{
		Use:   "pin",
		Short: "Print the certificate pin of a running controller",
		Long: `Pin prints the pin of the service's certificate authority, which "headgate login" and
"headgate agent join" need. It runs on a controller's machine, while the controller is
running. All controllers of a service have the same pin.`,
		Example: `  headgate controller pin
  headgate login https://127.0.0.1:8420 --pin "$(headgate controller pin)" --token-file /var/lib/headgate/controller/operator.token`,
		Args: cobra.NoArgs,
	}
	r.flags(c)
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := r.read(a, c); err != nil {
			return err
		}
		s, err := backend.Connect(c.Context(), r.Dir)
		if err != nil {
			return err
		}
		defer s.Close()
		pin, err := controller.Pin(c.Context(), s)
		if err != nil {
			return err
		}
		return a.print(*output, struct {
			Pin string `json:"pin"`
		}{pin}, func(w io.Writer) error { _, err := fmt.Fprintln(w, pin); return err })
	}
	return c
}
