// Package bench is the harness of Headgate's experiments: it runs a Bench, holds
// what was measured against targets that were fixed beforehand, and reports it
// as a table, as JSON and as Markdown with plots.
//
// A Bench is a list of Cases. A Case declares its Claims before anything runs:
// what is measured, in which unit, what the paper found, who is measured beside
// us, and the target, which is copied once from the issue that asked for it. A
// case that runs writes values into Sheets, one for each thing that is compared
// ("headgate", "quantum", "htb by hand"). With several runs, or samples within one,
// a claim's value is the median, with the least, the most and how many there were;
// every run is kept in the result. A claim that nothing was measured for stays in the
// result as missing, and counts as short.
//
// Beside fixed cases a bench may have drawn ones, from ranges that it states: it is
// a function of a Draw, whose seed is kept with the result and repeats it. The ids
// of claims never depend on what is drawn ("ramp-out/drawn-1/total"), and Case.Drawn
// says the values.
//
// The harness knows nothing of networks. The experiments are below:
//
//	groups/     bandwidth groups on an interface: the bwaas seed's chapters V and VII
//	switching/  virtual switches: the bwaas seed's chapter VI
//	busy/       processor time of this program and the kernel
//	peers/      what else limits a device, as an expert would set it up by hand
package bench
