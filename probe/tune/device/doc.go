// Package device measures the path through a device, proposes limits for the device with package tune, and
// measures again with the limits in force. Between the two measurements the caller applies the limits: the
// package changes no device.
//
// Rates are bit/s and sizes are bytes, both of layer 2.
package device
