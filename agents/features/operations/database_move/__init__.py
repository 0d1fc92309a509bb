"""`vel database move`: copy Vel's own database to another one, and compare both.

`move` has the order of the work. `sides` are the two databases, `sqlite` and `postgresql` their
kinds. `tables` and `values` say what is copied, and `quiet` finds processes that still write.
"""
