package quantum

//go:generate ../../bpf/gen.sh policer policer.c
