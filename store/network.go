package store

// NetworkConfigKey is the key of the configuration of the network of switches.
var NetworkConfigKey = Key(Network, "config")

// NetworkConfig is the configuration of the network of switches.
type NetworkConfig struct {
	// Text is one document of kind: Network, as config.FormatNetwork prints it.
	Text string `json:"text"`
}
