// Package session lets two hosts measure the path between them: one serves, the
// other asks it to receive trains and to send them, and gets the samples.
//
// # Protocol
//
// Control is JSON lines over TLS 1.3 over TCP, data UDP, by default both on port
// 4950. Either both ends have a shared key, and prove it by a MAC of what only the
// two ends of this TLS connection know (RFC 9266's exporter), or each has a
// certificate that the other's authority signed. Without either, "headgate probe
// serve" wants to be told that it is open to all.
//
//	client                          server
//	  TLS, "proof"            <->   "proof"            only with a shared key
//	  "open"                   ->                      version, name
//	                          <-    "wait"             while another client measures
//	                          <-    "welcome"          session number, caps
//	  UDP Hello                ->
//	                          <-    UDP Challenge      no larger than the Hello, to where that came from
//	  UDP Proof                ->
//	                          <-    "ready"            the MTU, from where the server saw the client
//	  "train" to the server    ->                      and UDP data at once
//	  "sent"                   ->
//	                          <-    "arrived"          each packet's number and stamp
//	  "train" to the client    ->
//	                          <-    UDP data, then "sent" with each packet's time
//	  "bye"                    ->
//
// # What a client cannot make a server do
//
// It sends to no address that has not returned its nonce, so to no third party. What
// it sends is bounded by Caps: bytes in a session, bytes in a second, time. One
// client measures at a time, others wait; a line longer than 512 KiB, a train
// beyond the caps or anything else that is not in the protocol ends the session.
//
// # Trouble
//
// A train whose sender stood still, or whose receiver's clock was set, is sent again,
// up to Retries times; after that the sample says what is wrong with it (Flaws).
package session
