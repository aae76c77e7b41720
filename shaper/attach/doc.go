// Package attach manages the attachment points of an engine's programs: the two filter hooks of
// a device (clsact), foreign objects at these hooks, the connections assigned on the device,
// and the lock that serialises changes. All engines use it, so that they detect, reject and
// ignore the same objects, and can distinguish their own devices from those of other engines.
//
// A device belongs to the engine named in the record of its attached program
// (classifier.Record). For programs of another engine, Device.OtherEngine has the name of that
// engine; an engine does not change such programs.
package attach
