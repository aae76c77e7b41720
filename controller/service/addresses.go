package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// CheckAdvertised returns an error if an advertised address cannot be one.
func (o Options) CheckAdvertised() error {
	for _, at := range o.Advertise {
		host, port, err := net.SplitHostPort(o.withPort(at))
		if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" {
			return fmt.Errorf("--advertise %s is not a name or an address: set one such as gw.example.org, gw.example.org:18421 or 2001:db8::1", at)
		}
	}
	if len(o.Advertise) > 0 && len(o.Controllers.Members) > 1 {
		return fmt.Errorf("--advertise is for a single controller: set the addresses in %s", o.Controllers.File)
	}
	return nil
}

// withPort returns an advertised address with its port, which is that for agents if it has none.
func (o Options) withPort(at string) string {
	if _, _, err := net.SplitHostPort(at); err == nil {
		return at
	}
	return net.JoinHostPort(at, portText(o.Controllers.Agents))
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
		return o.certificateNames()
	}
	return []string{m.Address}
}

// agentAddresses returns the addresses at which agents connect to the controllers.
func (o Options) agentAddresses() (all []string) {
	for _, at := range o.Advertise {
		all = append(all, o.withPort(at))
	}
	if len(all) > 0 {
		return all
	}
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
func (o Options) certificateNames() (all []string) {
	if _, err := netip.ParseAddr(o.Listen); err != nil {
		all = append(all, o.Listen)
	}
	all = append(all, o.Hosts...)
	for _, at := range o.Advertise {
		if host, _, err := net.SplitHostPort(o.withPort(at)); err == nil && !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
