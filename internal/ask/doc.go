// Package ask has programs of a machine ask a daemon on it over a Unix socket: one JSON object,
// with a descriptor beside it (SCM_RIGHTS) where the question is about one, and one JSON object
// as the answer.
//
// Whoever asks is told by the kernel (SO_PEERCRED): anybody may ask, and the daemon decides by
// user. A question has at most 4 KiB and one descriptor, and two seconds to arrive in; 32 are
// answered at a time, 8 of them of one user, so that nobody keeps the others from it.
package ask
