"""Transfer of a thread's files between machines: sending and receiving them."""
