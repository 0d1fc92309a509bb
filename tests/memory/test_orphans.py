"""Approval requests whose memory edit was removed, as by `vel features remove memory`."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from agents.models import ApprovalRequest
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.errors import Conflict
from memory.models import MemoryEditRequest, MemoryFile
from tests.agents.web.conftest import SignIn
from tests.support import site_writer


@pytest.fixture
def orphan(sign_in: SignIn) -> ApprovalRequest:
    sign_in("ada")
    run = site_writer.make_run("ada")
    request = ApprovalRequest.objects.get(
        pk=site_writer.ask_memory(run, "knowledge/a.md", "Beans.")
    )
    MemoryEditRequest.objects.all().delete()
    return ApprovalRequest.objects.get(pk=request.pk)


@pytest.mark.django_db
def test_they_can_only_be_rejected(orphan: ApprovalRequest) -> None:
    ada = User.objects.get(username="ada")
    with pytest.raises(Conflict, match="Reject the request"):
        decide_approval(orphan.pk, DecisionRequest("approve"), by=ada)
    with pytest.raises(Conflict, match="Reject the request"):
        decide_approval(orphan.pk, DecisionRequest("edit", input={"content": "x"}), by=ada)
    assert decide_approval(orphan.pk, DecisionRequest("reject"), by=ada).decision == "reject"
    assert not MemoryFile.objects.exists()


@pytest.mark.django_db
def test_pages_show_them(orphan: ApprovalRequest, sign_in: SignIn) -> None:
    client = sign_in("ada")
    for url in ("/approvals/", f"/approvals/{orphan.pk}/", f"/api/v1/approvals/{orphan.pk}"):
        answer = client.get(url)
        assert answer.status_code == 200
        assert b"write_memory" in answer.content
