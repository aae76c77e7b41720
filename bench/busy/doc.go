// Package busy measures how much of the machine's processors this program and the kernel
// take: for a bench that compares what it costs to carry packets in two ways.
//
// The kernel's own counts do not serve. It counts in ticks of 4 or 10 ms, and what a
// limiter does is shorter and begins with a timer, as ticks do; and most of it happens in
// interrupts of an idle processor, which no program is charged for. So two tracepoints are
// asked: tasks of this program and threads of the kernel count from switch to switch, and
// interrupts (softirq) in the time of any other task, the idle one among them. Children of
// this program do not count, nor does any other program.
package busy

//go:generate ../../bpf/gen.sh object busy.c
