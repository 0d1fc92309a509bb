"""The doctor reports each problem and how to solve it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django_q.models import OrmQ

from agents.models import ProcessKind, ServerProcess
from agents.selectors.metrics import ALIVE_SECONDS
from tests.support.toolboxes import put_toolbox
from tests.velproject.command import Vel
from velproject.doctor import running


def findings(
    vel: Vel, *arguments: str, fresh: bool = False, **environment: str
) -> tuple[int, dict[str, Any]]:
    run = vel.fresh if fresh else vel
    done = run("doctor", "--json", *arguments, **environment)
    assert done.stderr == ""
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {row["subject"]: row for row in rows}


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_good_machine_passes(vel: Vel) -> None:
    """This test uses a new interpreter with all settings of a server; the other tests fork."""
    code, found = findings(vel, fresh=True)
    assert code == 0
    for subject in ("python", "data directory", "settings", "database", "sandbox"):
        assert found[subject]["level"] == "ok", found[subject]
    assert found["workers"]["level"] == "note"
    assert "vel up" in found["workers"]["mend"]
    assert found["model"]["level"] == "note"
    assert vel.count("django_q_ormq") == 0


@pytest.mark.slow
def test_the_report_for_people_names_the_fixes(vel: Vel) -> None:
    done = vel("doctor")
    assert "→ Set ANTHROPIC_API_KEY" in done.stdout


@pytest.mark.slow
def test_a_machine_without_bubblewrap_fails(vel: Vel) -> None:
    code, found = findings(vel, PATH="/nowhere")
    assert code == 1
    assert found["sandbox"]["level"] == "broken"
    assert "apt install bubblewrap" in found["sandbox"]["detail"]


@pytest.mark.slow
def test_an_unreachable_database_fails_and_the_rest_is_still_reported(vel: Vel) -> None:
    code, found = findings(vel, DATABASE_URL="postgresql://vel:sesame@127.0.0.1:1/vel")
    assert code == 1
    assert found["database"]["level"] == "broken"
    assert "sesame" not in json.dumps(found)
    assert "model" in found


def test_settings_that_cannot_be_read_fail(vel: Vel) -> None:
    code, found = findings(vel, VEL_WORKERS="many")
    assert code == 1
    assert "VEL_WORKERS: expected a whole number" in found["settings"]["detail"]


def test_a_data_directory_that_is_not_a_directory_fails(vel: Vel) -> None:
    (vel.data / "file").write_text("")
    code, found = findings(vel, VEL_DATA_DIR=str(vel.data / "file"))
    assert code == 1
    assert found["data directory"]["level"] == "broken"


@pytest.mark.slow
def test_a_new_database_is_a_note(vel: Vel) -> None:
    code, found = findings(vel, "--persist", str(vel.data / "new.sqlite3"))
    assert code == 0
    assert found["database"]["level"] == "note"
    assert "vel migrate" in found["database"]["mend"]


@pytest.mark.slow
def test_a_database_of_a_development_version_fails(vel: Vel) -> None:
    vel.execute(
        "INSERT INTO django_migrations (app, name, applied)"
        " VALUES ('agents', '0002_sandbox_options', '2026-11-22')"
    )
    code, found = findings(vel)
    assert code == 1
    assert "development version before 0.1.0" in found["database"]["detail"]


@pytest.mark.slow
def test_a_database_of_a_newer_vel_fails(vel: Vel) -> None:
    vel.execute(
        "INSERT INTO django_migrations (app, name, applied)"
        " VALUES ('agents', '9999_future', '2030-01-01')"
    )
    code, found = findings(vel)
    assert code == 1
    assert "agents.9999_future" in found["database"]["detail"]


def test_a_missing_toolbox_for_documents_is_a_note(vel: Vel) -> None:
    _, found = findings(vel)
    assert found["toolbox documents"]["level"] == "note"
    assert "vel toolbox create documents pypdf" in found["toolbox documents"]["mend"]
    _, found = findings(vel, VEL_DOCUMENTS_TOOLBOX="papers")
    assert found["toolbox papers"]["level"] == "note"
    assert "toolbox documents" not in found


def test_a_toolbox_for_documents_with_missing_packages_is_a_note(vel: Vel) -> None:
    put_toolbox(vel.data / "toolboxes", "documents", mark="pypdf")
    _, found = findings(vel)
    assert found["toolbox documents"]["level"] == "note"
    assert "pypdfium2" in found["toolbox documents"]["detail"]
    assert "without pypdf," not in found["toolbox documents"]["detail"]
    assert found["toolbox documents"]["mend"].endswith(" --replace")


@pytest.mark.slow
def test_a_model_server_that_does_not_answer_is_reported(vel: Vel) -> None:
    base = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    code, found = findings(vel, **base)
    assert code == 0
    assert found["model"]["level"] == "note"
    code, found = findings(vel, "--online", **base)
    assert code == 1
    assert found["model"]["level"] == "broken"


@pytest.mark.slow
def test_without_operations_the_doctor_works_and_names_the_missing_bundle(vel: Vel) -> None:
    done = vel(
        *("doctor", "--support-bundle", str(vel.data / "bundle.tar.gz")),
        VEL_DISABLED_FEATURES="operations",
    )
    assert "data directory" in done.stdout
    assert "workers" in done.stdout
    assert done.returncode == 1
    assert done.stderr == (
        "vel: --support-bundle: the feature with this option is not installed, so there is no "
        "bundle.\n"
    )
    assert not (vel.data / "bundle.tar.gz").exists()


def seen(kind: ProcessKind, seconds_ago: float) -> None:
    ServerProcess.objects.create(name=f"{kind}", kind=kind, seen_at=time.time() - seconds_ago)


@pytest.mark.django_db
@pytest.mark.both_databases
def test_without_a_live_worker_no_test_task_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "async_task", None)  # a call would be an error
    seen(ProcessKind.WEB, 0)
    seen(ProcessKind.WORKER, ALIVE_SECONDS + 60)
    assert running.check_workers().detail == (
        "no worker has reported within 35 s; 0 tasks are waiting"
    )


@pytest.mark.django_db
@pytest.mark.both_databases
def test_a_live_worker_that_takes_no_task_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ANSWER_SECONDS", 0.05)
    seen(ProcessKind.WORKER, 0)
    assert "no worker took a test task within" in running.check_workers().detail
    assert not OrmQ.objects.exists()
