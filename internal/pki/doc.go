// Package pki creates and parses certificates: two authorities, one for the store and one for
// agents and the API, and the certificates that they issue.
//
// Keys are ECDSA on P-256. The validity of a certificate begins five minutes before its creation,
// because clocks differ. An authority is valid for ten years, other certificates as long as the
// caller requests. There is no revocation list: revoked clients are removed from the store, which
// is checked at every call.
package pki
