"""The base of the pages: access, navigation, the security policy and upload limits."""
