"""What systems cost: time, memory, floating-point operations, calls and tokens, and from where on a gate pays for itself."""
