"""The base of the pages: access, navigation, the security policy, and the size of uploads."""
