"""Serializers for toolboxes."""

from __future__ import annotations

from rest_framework import serializers

from agents.doors.rest.serializers import Flag, StrictSerializer, Text
from agents.services.toolbox_builds import MOST_PACKAGES


class PackageShape(serializers.Serializer[object]):
    name = serializers.CharField()
    version = serializers.CharField()


class ToolboxShape(serializers.Serializer[object]):
    """A toolbox. `packages` are the requested ones. `problem` is the reason if it is unusable."""

    name = serializers.CharField()
    host = serializers.CharField(
        allow_blank=True,
        help_text="`VEL_HOST` of the server. Each host has its own toolboxes.",
    )
    packages = PackageShape(many=True)
    python = serializers.CharField(allow_blank=True)
    size = serializers.IntegerField(allow_null=True, help_text="Bytes.")
    built_at = serializers.CharField(allow_blank=True)
    problem = serializers.CharField(allow_blank=True)


class BuildShape(serializers.Serializer[object]):
    """The state of this toolbox's last build on this host that a REST request started."""

    state = serializers.ChoiceField(choices=["none", "building", "built", "failed"])
    detail = serializers.CharField(allow_blank=True, help_text="Why it failed.")


class ToolboxDetailShape(ToolboxShape):
    """A toolbox with its last build. `built_at` is empty until a first build succeeds."""

    build = BuildShape()


class NewToolboxBody(StrictSerializer):
    """`packages` are names with versions, as `pandas>=2`, of the index of the server's pip."""

    name = Text(max_length=100)
    packages = serializers.ListField(
        child=Text(max_length=200), min_length=1, max_length=MOST_PACKAGES
    )
    replace = Flag(default=False, help_text="Build an existing one again.")


class ToolboxesShape(serializers.Serializer[object]):
    results = ToolboxShape(many=True)
    next_cursor = serializers.CharField(allow_null=True, help_text="Always null: there are few.")
