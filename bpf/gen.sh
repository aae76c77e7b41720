#!/bin/sh
# Compiles one eBPF source to a committed object with the pinned compiler:
#   gen.sh NAME SOURCE.c
# Run by `go generate` in the folder of the source. The objects are the same on
# every machine with clang 19 and libbpf 1.1; CI fails if they are not.
set -eu
# Relative, because the path becomes part of the object.
here=$(realpath --relative-to=. "$(dirname "$0")")
GOPACKAGE=${GOPACKAGE:?run this through go generate} exec go tool bpf2go \
	-cc clang-19 -strip llvm-strip-19 -target bpfel -no-global-types \
	-cflags "-O2 -g -mcpu=v3 -Wall -Werror -I$here -I/usr/include/$(gcc -print-multiarch)" \
	"$1" "$2"
