package htb

//go:generate ../../bpf/gen.sh classifier classifier.c
//go:generate ../../bpf/gen.sh departures departures.c
//go:generate ../../bpf/gen.sh classFilter class.c
