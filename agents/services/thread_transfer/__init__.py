"""A thread's files on their way between machines: sending and receiving them."""
