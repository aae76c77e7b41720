// Package pending implements the automatic rollback of a change that is not confirmed in time (commit confirmed):
// the file with the state before the change, which survives the process, and the wait for
// the confirmation.
//
// A network namespace has at most one pending change. Its file goes through these steps,
// each a single rename or unlink, so that a killed process leaves one of them and no
// intermediate state:
//
//	NS.waiting       written before the change; confirming removes it
//	NS.rolling-back  renamed from NS.waiting at the deadline, removed after the rollback
//
// The waiting process holds a lock on NS.waiter (flock(2), which the kernel releases when
// the process ends): NS.waiting without a held lock is a rollback that will not happen by
// itself. A process that changes shaping holds NS.lock. Both files are removed with the lock; those of a
// killed process stay until the next one that takes the lock in this namespace.
package pending
