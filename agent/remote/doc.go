// Package remote connects the agent to controllers: it joins, stores the desired state on disk, and
// sends reports.
//
// A desired state is accepted only if it is not older than the stored one. Its epoch and revision
// are stored with the documents before the documents are applied. When the agent is disconnected,
// or is started without a controller, it continues with the stored state.
//
// The package applies nothing. Package agent does, and treats the stored state like one more
// configuration file.
package remote
