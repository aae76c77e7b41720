package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/agent/remote"
)

func agentJoinCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "join URL --host NAME",
		Short: "Register this host with a service, whose controllers then configure it",
		Long: `Join requests a client certificate for this host from a controller. It needs a join token
("headgate token create --role agent --host NAME"), which is valid once, and the certificate
pin of the service, which the controller prints when it starts. Then start "headgate agent".

The agent connects to the name or address of URL, unless the controllers announce other ones
that it reaches. If the port for agents (8421) is forwarded from another one, name that with
--agents.`,
		Example: `  headgate agent join https://10.0.0.1:8420 --host web1 --token-file join.token --pin yKx...
  headgate agent join https://gw.example.org:18420 --agents gw.example.org:18421 --host web1 --token-file join.token --pin yKx...
  headgate agent`,
		Args: cobra.ExactArgs(1),
	}
	dir := c.Flags().String("dir", agentDir, "the state `DIR`")
	name, _ := os.Hostname()
	host := c.Flags().String("host", name, "the `NAME` of this host in the service")
	file := c.Flags().String("token-file", "", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the certificate pin: SHA-256 `HASH` of the service's certificate authority")
	agentAddress := c.Flags().String("agents", "", "the `ADDRESS:PORT` at which this host reaches the controller's port for agents, if it is not that of URL with the announced port")
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, _, err := net.SplitHostPort(*agentAddress); *agentAddress != "" && err != nil {
			return usageError{fmt.Errorf("--agents %s: %w: write an address with a port, such as 192.0.2.1:18421", *agentAddress, err), c.CommandPath()}
		}
		if *pin == "" || *file == "" {
			return usageError{errors.New("--token-file or --pin is missing: the controller prints the pin when it starts"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		if err := remote.Join(c.Context(), *dir, remote.Controller{URL: args[0], Host: *host, Token: token, Pin: *pin, AgentAddress: *agentAddress}); err != nil {
			return err
		}
		a.note("host %s has joined; start \"headgate agent\" now", *host)
		return nil
	}
	return c
}

// readToken reads a token from a file; "-" is standard input.
func readToken(file string, stdin io.Reader) (string, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, 1000))
	} else {
		text, err = os.ReadFile(file)
	}
	token := strings.TrimSpace(string(text))
	if err == nil && token == "" {
		err = fmt.Errorf("token file %s is empty", file)
	}
	return token, err
}
