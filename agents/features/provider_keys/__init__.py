"""Keys of model providers that administrators set, test and remove while Vel runs.

A key is stored encrypted, for one provider and the server of its base URL. It is used if the
settings and the environment have no key for this provider.
"""
