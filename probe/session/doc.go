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
// A server also measures to another one, if it was started so: in place of "open" its
// client says "measure", with the peer and a request that this package does not read.
//
//	"measure"                ->                      version, peer, request
//	                        <-    "wait"             while another client measures
//	                        <-    "progress"         each second, and where it stands
//	                        <-    "measured"         the result, or why there is none
//
// Until then the client's next byte, or its end, ends the measurement. The server
// takes its own turn, so that nobody else measures through it, and then the peer's as
// any client of it does. Two servers that each hold their own and want the other's
// (two clients may ask for that at once) do not block each other: who does not get
// the peer's turn within TurnPatience gives its own back, and tries again after a
// random pause, for two minutes.
//
// # What a client cannot make a server do
//
// It sends to no address that has not returned its nonce, so to no third party. What
// it sends is bounded by Caps: bytes in a session, bytes in a second, time. One
// client measures at a time, others wait; a line longer than 512 KiB, a train
// beyond the caps or anything else that is not in the protocol ends the session.
//
// It measures to no peer but those in Peers, each by the words that stand there, and
// there as a client with its own key or certificate: so the peer must have agreed to
// it, and returned a nonce. What it sends there is bounded by its Caps as well
// (Options.Caps), what comes back by the peer's.
//
// # Trouble
//
// A train whose sender stood still, or whose receiver's clock was set, is sent again,
// up to Retries times; after that the sample says what is wrong with it (Flaws).
package session
