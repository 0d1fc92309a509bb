from django.db import transaction
from vel_glossary.models import Term

from agents.kernel.features import Job


def delete_empty_term():
    """Delete one word without a meaning; return whether there was one."""
    with transaction.atomic():
        unlocked = Term.objects.select_for_update(skip_locked=True)
        term = unlocked.filter(meaning="").first()
        return term is not None and bool(term.delete())


JOBS = [Job("words without a meaning", delete_empty_term)]
