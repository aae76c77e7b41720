package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"headgate.dev/headgate/config"
)

// CheckAddresses returns an error if other controllers or the store cannot use a controller's address.
func (o Options) CheckAddresses() error {
	for _, m := range o.Controllers.Members {
		if _, err := netip.ParseAddr(m.Address); err != nil && o.External == nil {
			return fmt.Errorf("%q is not an IP address, which the controller's store needs: set one such as 10.0.0.1, and the name with --certificate-for", m.Address)
		}
		if m.Unspecified() && len(o.Controllers.Members) > 1 {
			return fmt.Errorf("%s is the unspecified address, and the other controllers need a specific one: set it as the address of %s", m.Address, m.Name)
		}
	}
	return nil
}

// CheckNames returns an error if the controller has no name or address to announce to agents.
func (o Options) CheckNames() error {
	if len(o.at(o.self())) == 0 {
		return errors.New("--certificate-for is missing: with --listen " + o.Listen + ", set --certificate-for to the name or address at which agents and API clients reach the controller")
	}
	return nil
}

// self returns this controller as a member.
func (o Options) self() config.Member {
	return config.Member{Name: o.Name, Address: o.Listen}
}

// at returns the names and addresses at which a controller is reachable.
func (o Options) at(m config.Member) []string {
	if m.Unspecified() {
		return o.Hosts
	}
	return []string{m.Address}
}

// agentAddresses returns the addresses at which agents connect to the controllers.
func (o Options) agentAddresses() (all []string) {
	for _, m := range o.Controllers.Members {
		for _, host := range o.at(m) {
			all = append(all, net.JoinHostPort(host, portText(o.Controllers.Agents)))
		}
	}
	return all
}

// peerAddresses returns the API addresses of the other controllers.
func (o Options) peerAddresses() (all []string) {
	for _, m := range o.Controllers.Members {
		if m.Name != o.Name {
			all = append(all, net.JoinHostPort(m.Address, portText(o.Controllers.API)))
		}
	}
	return all
}

// certificateNames returns the names and addresses in this controller's certificate, besides the listen address.
func (o Options) certificateNames() []string {
	if _, err := netip.ParseAddr(o.Listen); err != nil {
		return append([]string{o.Listen}, o.Hosts...)
	}
	return o.Hosts
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
