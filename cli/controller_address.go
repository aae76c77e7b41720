package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"headgate.dev/headgate/config"
)

// checkAddresses returns an error if other controllers or the store cannot use a controller's address.
func (r *controllerOptions) checkAddresses() error {
	for _, m := range r.controllers.Members {
		if _, err := netip.ParseAddr(m.Address); err != nil && !r.etcd.configured() {
			return fmt.Errorf("%q is not an IP address, which the controller's store needs: set one such as 10.0.0.1, and the name with --certificate-for", m.Address)
		}
		if m.Unspecified() && len(r.controllers.Members) > 1 {
			return fmt.Errorf("%s is the unspecified address, and the other controllers need a specific one: set it as the address of %s", m.Address, m.Name)
		}
	}
	return nil
}

// configError returns err as an error in the document of kind: Controllers.
func (r *controllerOptions) configError(err error) error {
	return config.Errors{{File: r.controllers.File, Line: r.controllers.Line, Message: err.Error()}}
}

// checkNames returns an error if the controller has no name or address to announce to agents.
func (r *controllerOptions) checkNames() error {
	if len(r.at(r.self())) == 0 {
		return errors.New("--certificate-for is missing: with --listen " + r.listen + ", set --certificate-for to the name or address at which agents and API clients reach the controller")
	}
	return nil
}

// self returns this controller as a member.
func (r controllerOptions) self() config.Member {
	return config.Member{Name: r.name, Address: r.listen}
}

// at returns the names and addresses at which a controller is reachable.
func (r controllerOptions) at(m config.Member) []string {
	if m.Unspecified() {
		return r.hosts
	}
	return []string{m.Address}
}

// agentAddresses returns the addresses at which agents connect to the controllers.
func (r controllerOptions) agentAddresses() (all []string) {
	for _, m := range r.controllers.Members {
		for _, host := range r.at(m) {
			all = append(all, net.JoinHostPort(host, portText(r.controllers.Agents)))
		}
	}
	return all
}

// peerAddresses returns the API addresses of the other controllers.
func (r controllerOptions) peerAddresses() (all []string) {
	for _, m := range r.controllers.Members {
		if m.Name != r.name {
			all = append(all, net.JoinHostPort(m.Address, portText(r.controllers.API)))
		}
	}
	return all
}

// certificateNames returns the names and addresses in this controller's certificate, besides the listen address.
func (r controllerOptions) certificateNames() []string {
	if _, err := netip.ParseAddr(r.listen); err != nil {
		return append([]string{r.listen}, r.hosts...)
	}
	return r.hosts
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
