"""What operations add to `vel doctor`."""

from __future__ import annotations

from agents.features.operations.service.support_bundle import write_bundle
from agents.kernel.findings import WriteBundle

BUNDLES: tuple[WriteBundle, ...] = (write_bundle,)
