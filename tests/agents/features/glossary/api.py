from django.urls import path
from rest_framework import serializers
from rest_framework.response import Response
from vel_glossary.models import Term

from agents.doors.rest.base import ApiView
from agents.doors.rest.operations import operation
from agents.models import TokenScope


class TermShape(serializers.ModelSerializer):
    class Meta:
        model = Term
        fields = ["word", "meaning"]


class Terms(ApiView):
    scopes = {"GET": TokenScope.READ}

    @operation("list_terms", "List the words of the glossary", answer=TermShape(many=True))
    def get(self, request):
        return Response(TermShape(Term.objects.all(), many=True).data)


urlpatterns = [path("glossary", Terms.as_view(), name="glossary")]
