"""The content security policy of Vel's pages."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "manifest-src 'self'",
        # No service worker and no web worker: nothing of the pages is stored in the browser.
        "worker-src 'none'",
        # Scripts cannot turn text into markup: browsers with trusted types refuse innerHTML.
        "require-trusted-types-for 'script'",
        # Lit turns the constant templates of its elements into markup with this policy.
        "trusted-types lit-html",
    )
)
