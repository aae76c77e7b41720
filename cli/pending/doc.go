// Package pending keeps a change that is undone unless it is confirmed in time:
// what was in force before it, in a file that survives the process, and the wait
// for the confirmation.
//
// There is at most one such change in a network namespace. Its file goes through
// these steps, each a single rename or unlink, so that a process that is killed
// leaves one of them and not something between:
//
//	NS.waiting       written before the change; confirming removes it
//	NS.rolling-back  renamed from NS.waiting when time is up, removed when undone
//
// Whoever waits holds a lock on NS.waiter (flock(2), which ends with the process
// however it ends): a file in the first step without a waiter is a rollback that
// will not happen by itself. Whoever changes shaping holds NS.lock.
package pending
