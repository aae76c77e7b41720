package sockops

//go:generate ../../bpf/gen.sh sockops sockops.c
