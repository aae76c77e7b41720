// Package pki makes and reads the certificates of the service: authorities of its own, one for
// the store and one for agents and the API, and what they sign.
//
// Keys are ECDSA on P-256. A certificate begins five minutes before it is made, because clocks
// differ; an authority lives ten years, what it signs as long as the caller says. Nothing is
// revoked here: who must not get in any more is taken from the store, which is asked at every
// call.
package pki
