// Package ask implements requests from programs to a daemon on the same machine over a Unix socket:
// one JSON object, optionally with a file descriptor (SCM_RIGHTS), and one JSON object as the
// response.
//
// The kernel identifies the user of the client (SO_PEERCRED). Any user may send requests, and the
// daemon decides by user. A request has at most 4 KiB and one descriptor, and must arrive within
// two seconds. At most 32 requests are processed at a time, 8 of them from one user, so that no
// user can block the others.
package ask
