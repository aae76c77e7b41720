// Package reservations owns the reservations of the network for one term of the leader (docs/decisions, 39): it keeps a
// reserve.Book, which it builds from the documents of the store and a topology, and it is the only writer of both.
//
// # Order of a change
//
// A change is decided on the book without effect, written in one transaction of the term, and then entered in the book.
// One lock is held from the decision until the change is entered, so that changes have one order. Nothing is granted that
// is not stored: a write that fails leaves the book as it was. What-ifs and calendars read the book, and wait for the
// moment alone in which a change is entered. Owner's operations are linearizable (TestLinearizable); the effect of a
// change is at the moment in which it is entered.
//
// If a write has no answer, it is unknown whether it was made. Owner then writes a document that every change reads
// (store.ReservationFence), so that the change cannot be made later, and builds the book again.
//
// # Relay agents
//
// A reservation whose traffic relay agents carry is for the streams between them. They are found once, when it is made, as the network would choose them
// for a connection (redirect.Choose). What is shown and what bounds of tenants are about stays what was asked for (reserve.Request.Asked). Rule is what
// the network redirects to the agents while the reservation is active.
//
// # Failures of the network
//
// When the topology changes, the reservations that lost a path, or that lack bandwidth, are planned together on a copy of
// the book (reserve.Book.Reroute), stored, and entered. One without a path stays in the book as degraded, with the reason.
// A leader that fails half way has stored a part: the next one plans the rest.
//
// At the beginning of a term the topology grows while switches connect. Owner begins when it has every link and port of
// the stored reservations, or after firstTopology, because a link that is missing then is dead.
//
// # Groups of hosts
//
// The guarantees of a host's groups are held in the book (holdGroups), and what reservations have of an interface is a document beside that of its
// groups (store.Reserved), which a change of the groups reads: who is second is refused. Both documents are read and written in the transactions that
// change either, so that of two changes at the same time one is decided again.
//
// # Cost
//
// With 10,000 reservations of a week on 200 switches and 800 cables, on one core of an AMD EPYC at idle priority with an
// etcd on the same machine (BenchmarkOwner): a create takes 1.4 ms in the median and 5.3 ms at the 99th percentile, of
// which 0.5 ms are the decision; a what-if 0.5 ms and 0.9 ms; the book is built in 0.5 s; after a dead cable the plan is
// stored and entered in 125 ms.
//
// # Out of scope
//
// The package knows no HTTP and no configuration, and does not enforce or measure. It is told what groups have (Owner.CountGroups).
package reservations
