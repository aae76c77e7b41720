package sockops

//go:generate ../../bpf/gen.sh sockops sockops.c
//go:generate ../../bpf/gen.sh threshold threshold.c
