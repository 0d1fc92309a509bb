"""The scan of a package at its import: findings that a reviewer should see.

The scan does not run, import or unpack a package. It helps the reviewer and is not a security
boundary: see docs/skills-trust.md.

The rules are imported at the first scan: their expressions cost 120 ms to compile, and most
processes do not scan.
"""

from agents.kernel.lazy_modules import lazy_modules
from skills_app.library.package import Package
from skills_app.library.scan.finding import ScanFinding, findings_json, has_danger

with lazy_modules:
    from skills_app.library.scan import scanning

__all__ = ["ScanFinding", "findings_json", "has_danger", "scan_package"]


def scan_package(package: Package) -> list[ScanFinding]:
    """Return findings for a reviewer, the worst first. Never raises, for any bytes.

    Every byte of every file is examined. Bytes beyond the limits are only searched for the plainest
    signs, and a finding reports that.
    """
    return scanning.scan_package(package)
