// Package bench is the framework of Headgate's benchmarks: it runs a Bench, compares the measurements
// with targets that were fixed before, and reports them as a table, as JSON and as Markdown with
// plots.
//
// A Bench is a list of Cases. A Case declares its Claims before anything runs: what is measured, in
// which unit, the paper's value, the peers, and the target. A running case writes values into Sheets,
// one for each program that is compared ("headgate", "quantum", "htb by hand"). With several runs, or
// samples in one run, a claim's value is the median, with the minimum, the maximum and their number;
// every run is kept in the result. A claim without a measurement stays in the result as missing, and
// counts as missed.
//
// Besides fixed cases a bench may have cases with random values, from ranges that it states: it is a
// function of a Draw, whose seed is stored with the result and reproduces it. The ids of claims do not
// depend on random values ("ramp-out/drawn-1/total"); Case.Drawn has the values.
//
// The framework is independent of networks. The benchmarks are in these packages:
//
//	groups/     bandwidth groups on an interface: the bwaas seed's chapters V and VII
//	fabric/     networks of OpenFlow switches
//	switching/  virtual switches: the bwaas seed's chapter VI
//	busy/       processor time of this program and the kernel
//	peers/      what else limits a device, as an expert would set it up by hand
package bench
