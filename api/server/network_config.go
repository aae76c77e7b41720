package server

import (
	"fmt"
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/store"
)

// networkConfigOf returns the API form of the network's configuration.
func networkConfigOf(c store.NetworkConfig) api.NetworkConfig { return api.NetworkConfig{Text: c.Text} }

func noNetworkConfig() *Refusal {
	return refuse(http.StatusNotFound, "the network has no configuration: set it with \"headgate network apply -f FILE\"")
}

// GetNetworkConfig shows the configuration of the network.
func (s *Server) GetNetworkConfig(w http.ResponseWriter, r *http.Request) {
	out, err := get[store.NetworkConfig](s, r, store.NetworkConfigKey, noNetworkConfig())
	writeResource(w, r, networkConfigOf(out), err)
}

// PutNetworkConfig creates or replaces the configuration of the network.
func (s *Server) PutNetworkConfig(w http.ResponseWriter, r *http.Request, _ api.PutNetworkConfigParams) {
	want, err := parseBody[api.NetworkConfig](r)
	var c fabric.Config
	if err == nil {
		if c, err = config.ParseNetwork("text", want.Text); err != nil {
			err = invalidField("text", err)
		}
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, store.NetworkConfigKey, func(q *changeRequest) (response, error) {
		if _, err := readCurrent(q, store.NetworkConfigKey, networkConfigOf); err != nil {
			return response{}, err
		}
		return put(q, store.NetworkConfigKey, store.NetworkConfig{Text: string(config.FormatNetwork(c))}, networkConfigOf)
	})
}

// DeleteNetworkConfig deletes the configuration of the network.
func (s *Server) DeleteNetworkConfig(w http.ResponseWriter, r *http.Request, _ api.DeleteNetworkConfigParams) {
	s.change(w, r, store.NetworkConfigKey, func(c *changeRequest) (response, error) {
		if _, err := readExisting(c, store.NetworkConfigKey, noNetworkConfig(), networkConfigOf); err != nil {
			return response{}, err
		}
		c.tx.Delete(store.NetworkConfigKey)
		return noContent, nil
	})
}

// SignSwitchCertificate signs a certificate for switches.
func (s *Server) SignSwitchCertificate(w http.ResponseWriter, r *http.Request, _ api.SignSwitchCertificateParams) {
	want, err := parseBody[api.SignSwitchCertificateJSONBody](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, store.NetworkConfigKey, func(c *changeRequest) (response, error) {
		ids, err := c.switchIDs(want.Switches)
		if err != nil {
			return response{}, invalidField("switches", err)
		}
		c.resource = "network/certificates"
		signed, err := s.SignSwitches(ids, []byte(want.Request), valueOr(want.Days, defaultCertificateDays))
		if err != nil {
			return response{}, invalidField("request", err)
		}
		return respondWith(http.StatusOK, signed)
	})
}

// defaultCertificateDays is that of the specification.
const defaultCertificateDays = 365

// switchIDs returns the switches with datapath ids, or with names in the configuration of the network.
func (c *changeRequest) switchIDs(texts []string) (ids []fabric.DPID, err error) {
	var stored store.NetworkConfig
	var network fabric.Config
	_, there, err := c.tx.Get(store.NetworkConfigKey, &stored)
	if err == nil && there {
		network, err = config.ParseNetwork("store", stored.Text)
	}
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		id, err := fabric.ParseDPID(text)
		for _, s := range network.Switches {
			if s.Name == text {
				id, err = s.ID, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither the name of a switch in the configuration of the network, nor a datapath id of 16 hexadecimal digits", text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
