from vel_glossary.models import Term

from agents.kernel.features import Job


def delete_empty_term():
    """Delete one word without a meaning; return whether there was one."""
    term = Term.objects.filter(meaning="").first()
    return term is not None and bool(term.delete())


JOBS = [Job("words without a meaning", delete_empty_term)]
