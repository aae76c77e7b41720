package meter

//go:generate ../../bpf/gen.sh object meter.c
