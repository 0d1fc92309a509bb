from django.contrib import admin
from vel_glossary.models import Term

admin.site.register(Term)
