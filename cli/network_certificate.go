package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/internal/wholefile"
)

// Files of "network certificate", as ovs-vsctl(8) names its arguments: set-ssl private-key certificate ca-cert.
const (
	switchKeyFile       = "key.pem"
	switchCertFile      = "cert.pem"
	switchAuthorityFile = "ca.pem"
)

// maxCertificateDays is the maximum of days in the API.
const maxCertificateDays = 3650

// switchFiles are the files of a switch's certificate.
type switchFiles struct {
	Switches  []string  `json:"switches"`
	Key       string    `json:"key"`
	Cert      string    `json:"certificate"`
	Authority string    `json:"authority"`
	Expires   time.Time `json:"expires"`
}

func networkCertificateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "certificate SWITCH... --to DIR",
		Short: "Create the certificate with which switches connect with TLS",
		Long: `Certificate writes key.pem, cert.pem and ca.pem for a switch into a directory, or for all bridges of
one Open vSwitch, which share a certificate. The service's authority for switches signs it. SWITCH is
a datapath id, or a name in the configuration of the network. The private key is made here, and does
not leave this machine.

A certificate is valid for --days, and is not renewed by itself. Run the same command again to renew
it: a key that is in the directory stays, and Open vSwitch reads the new certificate by itself.`,
		Example: `  headgate network certificate 0000000000000001 --to /etc/openvswitch/headgate
  headgate network certificate s1 s2 --to ./machine1 --days 90`,
		Args: cobra.MinimumNArgs(1),
	}
	to := c.Flags().String("to", "", "write the files into this `DIR`, and create it if needed")
	days := c.Flags().Int("days", 365, "how many days the certificate is valid")
	requireFlags(c, "to")
	required := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if *days < 1 || *days > maxCertificateDays {
			return usageError{fmt.Errorf("--days is %d: set it to 1 to %d", *days, maxCertificateDays), c.CommandPath()}
		}
		return required(c, args)
	}
	server := query(a, c, func(q request) (out switchFiles, err error) {
		out = switchFiles{Key: filepath.Join(*to, switchKeyFile), Cert: filepath.Join(*to, switchCertFile), Authority: filepath.Join(*to, switchAuthorityFile)}
		ask, key, err := certificateRequest(out.Key)
		if err != nil {
			return out, err
		}
		signed, err := api.Decode[api.SwitchCertificate](q.client.SignSwitchCertificate(q.ctx, nil, api.SignSwitchCertificateJSONRequestBody{Switches: q.args, Request: string(ask), Days: days}))
		if err != nil {
			return out, err
		}
		out.Switches, out.Expires = signed.Switches, signed.Expires
		if err := os.MkdirAll(*to, 0o755); err != nil {
			return out, err
		}
		for _, f := range []struct {
			name, text string
			mode       os.FileMode
		}{{out.Key, string(key), 0o600}, {out.Authority, signed.Authority, 0o644}, {out.Cert, signed.Certificate, 0o644}} {
			if err := wholefile.Write(f.name, []byte(f.text), f.mode); err != nil {
				return out, err
			}
		}
		return out, nil
	}, func(w io.Writer, f switchFiles) error {
		_, err := fmt.Fprintf(w, "switch %s: certificate valid until %s in %s\non its machine: headgate network connect BRIDGE --controller ssl:ADDRESS --ca %s --cert %s --key %s\n",
			strings.Join(f.Switches, ", "), f.Expires.Local().Format(time.DateOnly), f.Cert, f.Authority, f.Cert, f.Key)
		return err
	})
	c.ValidArgsFunction = completeSwitches(server)
	return c
}

// certificateRequest makes a request for the key in a file, or for a new key if there is no file.
func certificateRequest(file string) (request, key []byte, err error) {
	key, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return pki.Request("switch") // the service sets the name
	}
	if err != nil {
		return nil, nil, err
	}
	if request, err = pki.RequestWith("switch", key); err != nil {
		return nil, nil, fmt.Errorf("%s: %w: remove it, or set --to to another directory", file, err)
	}
	return request, key, nil
}
