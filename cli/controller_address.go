package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"headgate/config"
)

// checkAddresses finds addresses at which controllers could not be spoken to.
func (r *controllerRun) checkAddresses() error {
	for _, m := range r.controllers.Members {
		if _, err := netip.ParseAddr(m.Address); err != nil && !r.etcd.asked() {
			return fmt.Errorf("%q is not an address, which the store of a controller needs: write one such as 10.0.0.1, and the name with --certificate-for", m.Address)
		}
		if everywhere(m.Address) && len(r.controllers.Members) > 1 {
			return fmt.Errorf("%s is all addresses of a machine, and the other controllers have to know one: write that as the address of %s", m.Address, m.Name)
		}
	}
	return nil
}

// mistake is one in the file that says who the controllers are.
func (r *controllerRun) mistake(err error) error {
	return config.Mistakes{{File: r.controllers.File, Line: r.controllers.Line, Message: err.Error()}}
}

// checkNames finds out whether agents can be told where this controller is.
func (r *controllerRun) checkNames() error {
	if len(r.at(r.self())) == 0 {
		return errors.New("agents and callers have to know where the controller is: write --certificate-for and the name or address at which they find it, beside --listen " + r.listen)
	}
	return nil
}

// everywhere tells whether an address is all of a machine's.
func everywhere(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.IsUnspecified()
}

// self is this controller.
func (r controllerRun) self() config.Member { return config.Member{Name: r.name, Address: r.listen} }

// at are the names and addresses at which a controller is found.
func (r controllerRun) at(m config.Member) []string {
	if everywhere(m.Address) {
		return r.hosts
	}
	return []string{m.Address}
}

// agentsAt is where agents find the controllers.
func (r controllerRun) agentsAt() (all []string) {
	for _, m := range r.controllers.Members {
		for _, host := range r.at(m) {
			all = append(all, net.JoinHostPort(host, portText(r.controllers.Agents)))
		}
	}
	return all
}

// othersAt is where the APIs of the other controllers are.
func (r controllerRun) othersAt() (all []string) {
	for _, m := range r.controllers.Members {
		if m.Name != r.name {
			all = append(all, net.JoinHostPort(m.Address, portText(r.controllers.API)))
		}
	}
	return all
}

// certified are names and addresses that this controller's certificate is for, beside the address.
func (r controllerRun) certified() []string {
	if _, err := netip.ParseAddr(r.listen); err != nil {
		return append([]string{r.listen}, r.hosts...)
	}
	return r.hosts
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
