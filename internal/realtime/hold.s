// Functions without a body, which hold.go links to the runtime, need a file of assembly beside them.
