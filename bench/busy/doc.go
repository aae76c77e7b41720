// Package busy measures how much processor time this program and the kernel use, for benchmarks that
// compare the cost of carrying packets in two ways.
//
// The kernel's own counters are not sufficient. They count in ticks of 4 or 10 ms, and the work of a
// limiter is shorter and begins with a timer, as ticks do. Most of the work is in interrupts of an
// idle processor, which are attributed to no program. So this package uses two tracepoints: tasks of
// this program and threads of the kernel count from switch to switch, and interrupts (softirq) count
// in the time of any other task, including the idle one. Children of this program and other programs
// do not count.
package busy

//go:generate ../../bpf/gen.sh object busy.c
