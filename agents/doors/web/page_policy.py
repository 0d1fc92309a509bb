"""The content security policy of Vel's pages. Browsers enforce it."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        # No script may turn text into markup: browsers that know this refuse innerHTML.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
