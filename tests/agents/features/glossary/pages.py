from django.shortcuts import render
from django.urls import path
from vel_glossary.models import Term

from agents.doors.web.navigation import NavigationEntry
from agents.doors.web.pages import page


@page
def glossary(request):
    return render(request, "vel_glossary/terms.html", {"terms": Term.objects.all()})


urlpatterns = [path("glossary/", glossary, name="glossary")]
NAVIGATION = [NavigationEntry("web:glossary", "Glossary", order=600, key="y", help="glossary")]
