package peers

//go:generate ../../bpf/gen.sh policer policer.c
