"""The Helm chart: its values, and the objects that Helm renders from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy import chart
from tests.docs_tools.blocks import ROOT

SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((chart.CHART / "values.yaml").read_text())
needs_helm = pytest.mark.skipif(not chart.has_helm(), reason="needs helm")


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `changes`, as Helm merges values."""
    found = dict(base)
    for key, value in changes.items():
        old = found.get(key)
        found[key] = (
            merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return found


def objects(name: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(chart.stored(name)) if each]


def of_kind(name: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in objects(name) if each["kind"] == kind]


def pods(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the template of each object that makes pods."""
    for each in objects(name):
        if "template" in each.get("spec", {}):
            yield each["kind"], each["spec"]["template"]


@pytest.mark.parametrize("name", chart.VALUES)
def test_the_stored_objects_are_those_of_the_present_chart(name: str) -> None:
    assert chart.stored(name).startswith(chart.mark()), (
        "The chart has changed. On a machine with Helm, run: python -m tests.deploy.chart"
    )


@needs_helm
@pytest.mark.parametrize("name", chart.VALUES)
def test_helm_renders_the_stored_objects(name: str) -> None:
    found = yaml.safe_load_all(chart.render(chart.VALUES[name]))
    assert [each for each in found if each] == objects(name)


@needs_helm
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"secret": {"existing": ""}}, "openssl rand -base64 48"),
        ({"storage": {"url": ""}}, "Set storage.url"),
        ({"image": {"digest": ""}}, "Set image.tag or image.digest"),
        ({"secret": {"existing": "", "secretKey": "k" * 40}}, "secret.databaseUrl"),
    ],
)
def test_a_missing_value_is_named_with_its_remedy(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chart.render(merged(chart.VALUES["object"], changes))


@pytest.mark.parametrize("name", chart.VALUES)
def test_the_values_match_the_schema(name: str) -> None:
    jsonschema.validate(merged(DEFAULTS, chart.VALUES[name]), SCHEMA)


def test_the_schema_describes_each_value() -> None:
    def check(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        for key, value in values.items():
            assert key in schema["properties"], f"{path}{key}"
            if isinstance(value, dict) and "properties" in schema["properties"][key]:
                check(value, schema["properties"][key], f"{path}{key}.")

    check(DEFAULTS, SCHEMA, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"image": {"repository": ""}},
        {"image": {"digest": "latest"}},
        {"publicUrl": "http://vel.example.org"},
        {"hosts": []},
        {"hosts": ["*"]},
        {"sandbox": {"hostUsers": True}},
        {"sandbox": {"procMount": "Default"}},
        {"sandbox": {"seccomp": "RuntimeDefault"}},
        {"secret": {"databaseUrl": "sqlite:////vel.sqlite3"}},
        {"settings": {"vel_workers": 1}},
        {"worker": {"replicas": 0}},
        {"replicas": 3},
    ],
)
def test_values_that_are_unknown_unsafe_or_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    values = merged(merged(DEFAULTS, chart.VALUES["object"]), changes)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, SCHEMA)


def test_the_values_of_the_documentation_match_the_schema() -> None:
    page = (ROOT / "docs/operations/containers.md").read_text()
    block = page.split("```yaml\n")[1].split("```")[0].replace("sha256:…", "sha256:" + "0" * 64)
    jsonschema.validate(merged(DEFAULTS, yaml.safe_load(block)), SCHEMA)


@pytest.mark.parametrize("name", chart.VALUES)
def test_no_pod_has_rights_of_the_node_or_of_the_cluster(name: str) -> None:
    found = list(pods(name))
    assert {kind for kind, _ in found} == {"Deployment", "StatefulSet", "Job"}
    for _, template in found:
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["hostUsers"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert not any("hostPath" in volume for volume in pod["volumes"])
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "procMount": "Unmasked",
        }


def test_the_profile_of_vel_filters_system_calls() -> None:
    for _, template in pods("object"):
        profile = template["spec"]["securityContext"]["seccompProfile"]
        assert profile == {"type": "Localhost", "localhostProfile": "vel.json"}


@pytest.mark.parametrize("name", chart.VALUES)
def test_secrets_are_only_in_the_secret(name: str) -> None:
    for each in objects(name):
        if each["kind"] != "Secret":
            text = json.dumps(each)
            assert "password" not in text
            assert chart.VALUES["shared"]["secret"]["secretKey"] not in text
    for _, template in pods(name):
        (source,) = template["spec"]["containers"][0]["envFrom"]
        assert source == {"secretRef": {"name": "vel"}}


@pytest.mark.parametrize("name", chart.VALUES)
def test_each_worker_is_a_host_with_a_permanent_name(name: str) -> None:
    (workers,) = of_kind(name, "StatefulSet")
    variables = workers["spec"]["template"]["spec"]["containers"][0]["env"]
    host = next(each for each in variables if each["name"] == "VEL_HOST")
    assert host["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_each_worker_has_a_volume_of_its_own_or_all_share_one() -> None:
    (own,) = of_kind("object", "StatefulSet")
    assert own["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    assert not of_kind("object", "PersistentVolumeClaim")
    (shared,) = of_kind("shared", "StatefulSet")
    assert "volumeClaimTemplates" not in shared["spec"]
    (claim,) = of_kind("shared", "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for kind, template in pods("shared"):
        claims = [
            v["persistentVolumeClaim"]
            for v in template["spec"]["volumes"]
            if "persistentVolumeClaim" in v
        ]
        assert claims == ([] if kind == "Job" else [{"claimName": claim["metadata"]["name"]}])


@pytest.mark.parametrize("name", chart.VALUES)
def test_the_tables_are_updated_before_an_upgrade(name: str) -> None:
    (job,) = of_kind(name, "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["migrate"]
    assert job["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize("name", chart.VALUES)
def test_services_and_budgets_select_the_pods_they_name(name: str) -> None:
    labels = {kind: template["metadata"]["labels"] for kind, template in pods(name)}
    components = {"web": labels["Deployment"], "worker": labels["StatefulSet"]}
    selectors = {
        **{each["metadata"]["name"]: each["spec"]["selector"] for each in of_kind(name, "Service")},
        **{
            f"budget of {each['metadata']['name']}": each["spec"]["selector"]["matchLabels"]
            for each in of_kind(name, "PodDisruptionBudget")
        },
    }
    chosen = {
        about: [part for part, has in components.items() if selector.items() <= has.items()]
        for about, selector in selectors.items()
    }
    assert chosen == {
        "vel": ["web"],
        "vel-worker": ["worker"],
        "budget of vel-web": ["web"],
        "budget of vel-worker": ["worker"],
    }


@pytest.mark.parametrize("name", chart.VALUES)
def test_pods_reach_no_private_address_and_no_metadata_of_a_cloud(name: str) -> None:
    both, web = of_kind(name, "NetworkPolicy")
    assert both["spec"]["ingress"] == []
    blocks = [
        to["ipBlock"] for rule in both["spec"]["egress"] for to in rule["to"] if "ipBlock" in to
    ]
    everything, version_6 = blocks
    assert everything["cidr"] == "0.0.0.0/0"
    assert {"10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16"} <= set(
        everything["except"]
    )
    assert version_6["cidr"] == "2000::/3"  # without fd00::/8 and fe80::/10
    assert web["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "web"


def test_the_ingress_always_has_a_certificate() -> None:
    assert not of_kind("object", "Ingress")
    (ingress,) = of_kind("shared", "Ingress")
    assert ingress["spec"]["tls"] == [{"hosts": ["vel.example.org"], "secretName": "vel-tls"}]
