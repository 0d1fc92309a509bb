"""Rendering of the chart with Helm, and the stored results.

Most machines have no Helm, so the rendered objects are stored in `rendered/`, with a digest of the
chart. After a change of the chart, run `python -m tests.deploy.chart` on a machine with Helm: the
program `helm`, or the package helm-python-sdk.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/vel"
RENDERED = Path(__file__).parent / "rendered"

VALUES: dict[str, dict[str, Any]] = {
    "object": {
        "image": {"repository": "registry.example.org/vel", "digest": "sha256:" + "0" * 64},
        "secret": {"existing": "vel"},
        "storage": {"url": "s3://vel-files?region_name=eu-central-1"},
    },
    "shared": {
        "image": {"repository": "registry.example.org/vel", "tag": "0.1.0"},
        "imagePullSecrets": [{"name": "registry"}],
        "secret": {
            "secretKey": "d5S0qk3v9ZpXw7Yt2LrBn8Hc4Gm6Jf1A",
            "databaseUrl": "postgresql://vel:password@db.example.org/vel",
            "extra": {"ANTHROPIC_API_KEY": "key"},
        },
        "settings": {"VEL_RUNS_PER_WORKER": 8},
        "storage": {"mode": "shared", "storageClass": "files"},
        "sandbox": {"appArmor": "", "seccomp": "Unconfined"},
        "ingress": {"enabled": True, "className": "nginx"},
        "networkPolicy": {"ingressFrom": [{"podSelector": {"matchLabels": {"app": "proxy"}}}]},
        "web": {"nodeSelector": {"pool": "web"}, "tolerations": [{"operator": "Exists"}]},
    },
}
"""The values of each stored result, by its name."""


def has_helm() -> bool:
    """Return whether this machine can render charts."""
    return bool(shutil.which("helm") or find_spec("helm_python"))


def render(values: dict[str, Any]) -> str:
    """Return the objects of the chart as YAML.

    Raises:
        ValueError: Helm refuses the values.
    """
    if shutil.which("helm"):
        done = subprocess.run(
            ["helm", "template", "vel", str(CHART), "--namespace", "vel", "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise ValueError(done.stderr)
        return done.stdout
    helm = import_module("helm_python")
    with helm.Chart.load(str(CHART)) as chart:
        try:
            found = chart.render(values, name="vel", namespace="vel")
        except helm.HelmError as error:
            raise ValueError(str(error)) from error
    texts = (found[name] for name in sorted(found) if name.endswith(".yaml"))
    return "".join(f"---\n{text.strip()}\n" for text in texts if text.strip())


def chart_digest() -> str:
    """Return a digest of all files of the chart and of the values here."""
    digest = hashlib.sha256(json.dumps(VALUES, sort_keys=True).encode())
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        digest.update(path.relative_to(CHART).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def stored(name: str) -> str:
    """Return the text of a stored result."""
    return (RENDERED / f"{name}.yaml").read_text(encoding="utf-8")


def mark() -> str:
    """Return the first line of each stored result."""
    return f"# Written by python -m tests.deploy.chart from the chart {chart_digest()}\n"


if __name__ == "__main__":
    RENDERED.mkdir(exist_ok=True)
    for each, its_values in VALUES.items():
        (RENDERED / f"{each}.yaml").write_text(mark() + render(its_values), encoding="utf-8")
