"""Analyse a skill for the search: which words it has, and how certainly it is about each."""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock

from skills_app.library.package import SKILL_FILE, Head, Package
from skills_app.library.search.query import Direction, between, direction, rarity
from skills_app.library.search.tokens import STOP, stems, vocabulary

MAX_BODY = 6_000
"""The number of characters of a body that are read.

The rest is about details: with it, requests over 180 public skills find the right one less often,
and reading takes three times as long.
"""
MAX_FILES = 100
MAX_SAID = 400
"""Characters of a description that the language model gets: it reads about 200 of them."""

NAME, TITLE, TAG, TRIGGER = 3.0, 1.5, 2.0, 2.5
DESCRIPTION, WHEN, HEADING, FILE, BODY = 1.4, 0.9, 0.8, 0.4, 0.5
"""The weight of one mention of a word in each field."""
REPEATED, MOST_REPEATED = 0.4, 2
"""The weight of a further mention in the same field, relative to the first; how many count."""
BODY_WORDS = 800
"""In a body with more words, each mention has less weight."""
RATE = 0.6
"""Mentions with the total weight `sum` give the certainty 1 - exp(-RATE * sum)."""
SUREST = 80
"""The number of stems that determine a skill's direction, besides those of its description."""


@dataclass(frozen=True)
class SkillDocument:
    """The parts of a skill that the search reads.

    `files` are relative paths. `priority` orders skills with the same score.
    """

    name: str
    description: str
    title: str = ""
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    body: str = ""
    files: tuple[str, ...] = ()
    priority: int = 0

    @cached_property
    def digest(self) -> str:
        """Return a hash of all parts that the search reads."""
        fields = (self.name, self.title, self.description, self.tags, self.triggers, self.files)
        text = f"{fields!r}\0{self.body}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def said(self) -> str:
        """Return the text that the language model reads."""
        return f"{self.name.replace('-', ' ')}: {self.description[:MAX_SAID]}"


def document_of(head: Head, body: str, files: Iterable[str] = ()) -> SkillDocument:
    """Return the document of a package's head and body. `files` are the paths of all its files."""
    return SkillDocument(
        name=head.name,
        description=head.description,
        title=head.title,
        tags=head.tags,
        triggers=head.triggers,
        body=body,
        files=tuple(path for path in files if path != SKILL_FILE),
        priority=head.priority,
    )


def package_document(package: Package) -> SkillDocument:
    return document_of(package.head, package.body, (file.path for file in package.files))


@dataclass(frozen=True, slots=True)
class Analysed:
    """A skill in stems, as the search reads it.

    `evidence` maps each stem to the certainty, from 0 to 1, that the skill is about it. `name` has
    the stems of its name, and `called` all of them as one text. `pairs` are neighbours in its name
    and description, and `direction` is its direction in the word space. `said` is the text for the
    language model, and `vector` the model's result, b"" if it has not read the text.
    """

    evidence: dict[str, float]
    name: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    direction: Direction
    called: str
    triggers: tuple[str, ...]
    said: str
    vector: bytes = b""


def dumped(analysed: Analysed) -> str:
    """Return an analysed skill as JSON. `loaded` reverses it exactly."""
    parts = asdict(analysed) | {
        "pairs": sorted(analysed.pairs),
        "name": sorted(analysed.name),
        "vector": b64encode(analysed.vector).decode(),
    }
    return json.dumps(parts, separators=(",", ":"))


NO_VECTOR = '"vector":""'
"""In the JSON of a skill without one, and in no other."""


def loaded(text: str) -> Analysed:
    parts = json.loads(text)
    return Analysed(
        parts["evidence"],
        frozenset(parts["name"]),
        frozenset((first, second) for first, second in parts["pairs"]),
        tuple(parts["direction"]),
        parts["called"],
        tuple(parts["triggers"]),
        parts["said"],
        b64decode(parts["vector"]),
    )


class _Cache:
    """The analysed documents that were used last, by their digest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[str, Analysed] = OrderedDict()
        self._lock = Lock()

    def get(self, digest: str) -> Analysed | None:
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
            return found

    def put(self, digest: str, analysed: Analysed) -> None:
        with self._lock:
            self._kept[digest] = analysed
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


cache = _Cache(2_000)


def analyse(document: SkillDocument) -> Analysed:
    """Return the analysed document. The result is cached by its content."""
    found = cache.get(document.digest)
    if found is None:
        found = _analyse(document)
        cache.put(document.digest, found)
    return found


def _analyse(document: SkillDocument) -> Analysed:
    said_sentences, when_sentences = split_description(document.description)
    sections = Sections(document.body[:MAX_BODY])
    name = _tokens([document.name.replace("-", " ")])
    tags = _tokens(document.tags)
    said, when = _tokens(said_sentences), _tokens(when_sentences)
    described = said + when
    totals: dict[str, float] = {}
    for tokens, weight in (
        (name, NAME),
        (_tokens([document.title]), TITLE),
        (tags, TAG),
        (_tokens([trigger.replace("*", " ") for trigger in document.triggers]), TRIGGER),
        (described, DESCRIPTION),
        (when + _tokens(sections.when), WHEN),
        (_tokens(sections.headings), HEADING),
        (_tokens(document.files[:MAX_FILES]), FILE),
    ):
        for token, count in Counter(tokens).items():
            more = REPEATED * min(MOST_REPEATED, count - 1)
            totals[token] = totals.get(token, 0.0) + weight * (1 + more)
    body = Counter(_tokens([sections.text]))
    length = 0.5 + 0.5 * body.total() / BODY_WORDS
    for token, count in body.items():
        totals[token] = totals.get(token, 0.0) + BODY * math.log2(1 + count / length)
    evidence = {
        token: round(1 - math.exp(-RATE * total), 3)
        for token, total in totals.items()
        if token not in STOP
    }
    return Analysed(
        evidence,
        frozenset(token for token in name if token not in STOP),
        frozenset(pairwise(described)) | frozenset(pairwise(name)),
        _direction(name * 2 + described + tags, evidence),
        f" {' '.join(stems(document.name.replace('-', ' ')))} ",
        document.triggers,
        document.said,
    )


def _direction(head: list[str], evidence: dict[str, float]) -> Direction:
    """Return the direction between that of the description and that of the most certain stems."""
    counts = Counter(token for token in head if token not in STOP)
    said = direction(
        (token, rarity(token) * math.sqrt(min(2, count))) for token, count in counts.items()
    )
    surest = sorted(
        ((sure * rarity(token), token) for token, sure in evidence.items()), reverse=True
    )
    middle = between(said, direction((token, weight) for weight, token in surest[:SUREST]))
    return tuple(round(part, 4) for part in middle)


def _tokens(texts: Sequence[str]) -> list[str]:
    """Return the stems of all texts. The phrases in a text follow its stems."""
    return [token for text in texts for token in vocabulary().with_phrases(stems(text))]


_SENTENCE = re.compile(r"[^.!?\n;]+(?:\.(?=\w)[^.!?\n;]*)*[.!?;]*")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_NOT_FOR = re.compile(
    r"\b(?:do(?:es)? not|don['’]t|never|not)"
    r" (?:use|for|intended|meant|suitable|trigger|apply|when|if)\b"
    r"|\b(?:skip|avoid) (?:it|this|when|for|if)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\buse (?:this |it )?(?:skill )?(?:when|for|if|to)\b|\bwhen(?:ever)? (?:the |a )?users?\b"
    r"|\btriggers?\b|\bwhen to use\b|\buseful (?:for|when)\b|\bask(?:s|ed)? (?:to|for|about)\b",
    re.IGNORECASE,
)
_WHEN_HEADING = re.compile(
    r"(?:when to (?:use|apply|activate)|use cases?|triggers?|overview|purpose"
    r"|what (?:this|it) does|capabilities)\b",
    re.IGNORECASE,
)
_NOT_HEADING = re.compile(r"\bnot (?:to )?use\b|\bwhen not\b|\bout of scope\b", re.IGNORECASE)

SECTION = 3_000
"""The number of characters of one section on when to use the skill that are read."""


def split_description(text: str) -> tuple[list[str], list[str]]:
    """Return (sentences on the purpose, sentences on when to use the skill) of a description.

    Sentences with exclusions ("not for …") are omitted.
    """
    said: list[str] = []
    when: list[str] = []
    for sentence in wanted_sentences(text):
        (when if _WHEN.search(sentence) else said).append(sentence)
    return said, when


def wanted_sentences(text: str) -> list[str]:
    """Return the sentences of `text`, except exclusions ("not for …")."""
    return [sentence for sentence in _SENTENCE.findall(text) if not _NOT_FOR.search(sentence)]


class Sections:
    """The body of a SKILL.md, divided by its headings.

    `headings` has all headings, `when` the sentences that say when to use the skill, and `text` the
    rest. Sections such as "When not to use" are omitted.
    """

    def __init__(self, body: str) -> None:
        # Blank out code without moving the text: a comment in code is not a heading.
        outline = _CODE.sub(lambda code: " " * len(code[0]), body)
        found = list(_HEADING.finditer(outline))
        self.headings = [heading[1] for heading in found]
        self.when: list[str] = []
        parts = [body[: found[0].start()] if found else body]
        for at, heading in enumerate(found):
            end = found[at + 1].start() if at + 1 < len(found) else len(body)
            if _NOT_HEADING.search(heading[1]):
                continue
            parts.append(body[heading.start() : end])
            if _WHEN_HEADING.match(heading[1]):
                self.when += wanted_sentences(body[heading.end() : end][:SECTION])
        self.text = "\n".join(parts)
