// Package session lets two hosts measure the path between them. One is the server. The
// other is the client: it requests trains in both directions and gets the samples.
//
// # Protocol
//
// Control messages are JSON lines over TLS 1.3 over TCP; data is UDP. Both use port 4950
// by default. The ends authenticate in one of two ways. With a shared key, each end sends
// a MAC of the channel binding of this TLS connection, which only its two ends know (the
// exporter of RFC 9266). With certificates, each end has a certificate that is signed by
// the authority that the other end trusts. Without either, "headgate probe serve" needs a
// flag that opens it to everyone.
//
//	client                          server
//	  TLS, "proof"            <->   "proof"            only with a shared key
//	  "open"                   ->                      version, name
//	                          <-    "wait"             while another client measures
//	                          <-    "welcome"          session number, caps
//	  UDP Hello                ->
//	                          <-    UDP Challenge      to the Hello's source, no larger than the Hello
//	  UDP Proof                ->
//	                          <-    "ready"            the MTU, and the client's address as the server sees it
//	  "train" to the server    ->                      UDP data follows at once
//	  "sent"                   ->
//	                          <-    "arrived"          number and timestamp of each packet
//	  "train" to the client    ->
//	                          <-    UDP data, then "sent" with the time of each packet
//	  "bye"                    ->
//
// A server that has peers also measures the path from itself to a peer. Its client sends
// "measure" in place of "open", with the peer and a request that this package does not
// interpret.
//
//	"measure"                ->                      version, peer, request
//	                        <-    "wait"             while another client measures
//	                        <-    "progress"         each second, with a progress text
//	                        <-    "measured"         the result, or the reason why there is none
//
// Until "measured" the next byte from the client, or the end of its connection, cancels
// the measurement. The server holds its own turn, so that no other client measures
// through this server, and then waits for a turn at the peer like any other client of the
// peer. Two servers can each hold their own turn and wait for the other's, if two clients
// request that at once. They do not deadlock: a server that gets no turn at the peer
// within PeerQueueTimeout releases its own, and retries after a random pause, for two
// minutes.
//
// # What a client cannot make a server do
//
// The server sends only to an address that has returned the server's nonce, so not to a
// third party. Caps bound what the server sends: bytes per session, bytes per second,
// time. One client measures at a time and the others wait. A line longer than 512 KiB, a
// train beyond the caps or any other violation of the protocol ends the session.
//
// The server measures only to the addresses in Peers, which must be spelled the same.
// There it is a client with its own key or certificate, so the peer must have admitted it
// and returned a nonce. The server's own Caps also bound what it sends to the peer
// (Options.Caps); the peer's caps bound what the peer sends back.
//
// # Errors in a train
//
// A train is sent again, up to Retries times and within the caps, if its sender stalled or its receiver's
// clock was set, unless it is to be sent once (probe.Train.Once). After that the sample describes the fault in Flaws.
package session
