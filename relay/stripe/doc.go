// Package stripe carries the bytes of many connections over many streams: reliable byte streams (TCP) between
// two agents, on one or several paths. It is a state machine without sockets and clocks: the caller passes what
// arrives, which stream can send and the time, and gets frames to send and bytes to deliver.
//
// A. Rosen, "Network Service Delivery and Throughput Optimization via Software Defined Networking" (Clemson,
// 2012), here "the thesis", sends blocks with a size and a sequence number round robin over a fixed number of
// streams of one connection, and the receiver queues up to q blocks of it; a blocked stream blocks the sender.
// What differs here:
//
//   - Streams are shared by all connections, and stay open: a new connection skips their handshake and slow start.
//   - A block (chunk) is sent on the stream on which it is estimated to arrive first, and a slow stream is left
//     out where it would only delay the end (Pick).
//   - A connection's receiver grants credit, so that the streams are always read: a slow reader delays no other
//     connection, and memory is bounded (receiver). A sender that needs more credit reports it (Blocked).
//   - Frames stay with the sender until the other agent has acknowledged them by stream. Those of a stream that
//     ended, or makes no progress, are sent on other streams; each byte is delivered once.
//
// # Units
//
// Offsets and sizes are bytes of one direction of a connection, times are from a monotonic clock.
package stripe
