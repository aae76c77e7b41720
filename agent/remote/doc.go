// Package remote is an agent's side of the service: it joins, keeps what the controllers want on
// disk, and tells them what there is.
//
// What is wanted is obeyed only if it is newer than what was: the pair of epoch and revision that
// comes with it is kept on disk with the documents, before anything is done about them. Cut off,
// or started without a controller, the agent goes on with what it has.
//
// It enforces nothing: package agent does, to which this is one more file.
package remote
