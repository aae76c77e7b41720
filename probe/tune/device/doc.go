// Package device measures the path through a device, proposes limits for the device with package tune, and
// measures again with the limits in force. Between the two measurements it applies the limits with a function of
// the caller: the package itself changes no device.
//
// Rates are bit/s and sizes are bytes, both of layer 2.
package device
