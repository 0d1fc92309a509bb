"""Rules of intent: which classes of words, near each other in a sentence, mean harm to whom.

A rule has an anchor and needs; each need is a set of classes that another word must have, at most
so many characters before or after the anchor. `+` wants the word meant, `-` wants it denied
("never tell"), `.` takes both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from text_scanner.concepts import C
from text_scanner.finding import Severity

Polarity = Literal["+", "-", "."]


@dataclass(frozen=True, slots=True)
class Need:
    """A word of one of `classes`, meant or denied, within the reach of the anchor."""

    classes: int
    polarity: Polarity = "."
    before: int = 120
    after: int = 120


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for, what it is called, and how bad it is."""

    pattern: str
    description: str
    severity: Severity
    anchor: Need
    needs: tuple[Need, ...]
    unless: int = 0
    """Classes of which no meant word may stand in the sentence."""

    one_negation: bool = False
    """Not where a second one undoes it: "never deploy without approval"."""

    wide: bool = False
    """Also over two sentences that follow each other."""

    @property
    def masks(self) -> tuple[int, ...]:
        return (self.anchor.classes, *(need.classes for need in self.needs))


def need(classes: C, polarity: Polarity = ".", before: int = 120, after: int = 120) -> Need:
    return Need(int(classes), polarity, before, after)


OUT = C.URL | C.EMAIL | C.OUTSIDE | C.SHADY
GUARD = C.FORBID
SENDS = C.SEND | C.SEND_TOO
DATAS = C.DATA | C.SENSITIVE


def _rule(
    pattern: str,
    description: str,
    severity: Severity,
    anchor: Need,
    *needs: Need,
    unless: C | int = GUARD,
    one_negation: bool = False,
    wide: bool = False,
) -> Rule:
    return Rule(pattern, description, severity, anchor, needs, int(unless), one_negation, wide)


AIMED = C.STANDING | C.AGENT | C.ALL

RULES: tuple[Rule, ...] = (
    # Override of instructions
    _rule(
        "override-instructions",
        "Tells the agent to set its instructions aside",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.PRIOR_STRONG, ".", 15, 25),
        need(C.INSTRUCTION, ".", 30, 40),
    ),
    _rule(
        "override-instructions",
        "Tells the agent to set its instructions aside",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.PRIOR, ".", 0, 25),
        need(C.INSTRUCTION, ".", 0, 40),
        need(C.AGENT | C.PRIOR | C.SYSTEM | C.ALL | C.OBEY, ".", 0, 60),
    ),
    _rule(
        "override-instructions",
        "Tells the agent to set its instructions aside",
        "danger",
        need(C.OVERRIDE, "+"),
        need(C.SYSTEM, ".", 20, 25),
        need(C.INSTRUCTION, ".", 40, 35),
    ),
    _rule(
        "override-authority",
        "Claims to stand above the user or the system",
        "danger",
        need(C.OUTRANK, "+"),
        need(C.SYSTEM, "+", 0, 40),
        need(C.INSTRUCTION, ".", 40, 60),
        need(C.SELF_NOUN | C.SELF, ".", 60, 0),
    ),
    # Concealment
    _rule(
        "conceal-from-user",
        "Tells the agent to keep something from people",
        "danger",
        need(C.TELL, "-"),
        need(C.PERSON, ".", 15, 45),
        need(C.SELF | C.SELF_NOUN, ".", 15, 45),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "conceal-from-user",
        "Tells the agent to keep something from people",
        "danger",
        need(C.TELL, "-"),
        need(C.IT, ".", 0, 2),
        need(C.PERSON, ".", 0, 30),
        need(C.PROHIBIT | C.NEG, ".", 25, 0),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "conceal-from-user",
        "Tells the agent to leave no note of an action",
        "warning",
        need(C.SKIP, "+"),
        need(C.TELL | C.HUSH | C.CLAIM, ".", 0, 8),
        need(C.SEND, "+", 160, 0),
        need(OUT | C.SECRET, ".", 160, 0),
        wide=True,
    ),
    _rule(
        "conceal-from-user",
        "Tells the agent to keep an action from people",
        "danger",
        need(C.TELL | C.HUSH, "-"),
        need(C.PERSON, ".", 15, 40),
        need(SENDS | C.COPY | C.DELETE | C.PAY, "+", 140, 0),
        need(C.SECRET | DATAS | C.STORE | C.TRACES | C.BANK, ".", 140, 0),
        need(OUT | C.STORE | C.TRACES, ".", 140, 0),
    ),
    _rule(
        "conceal-from-user",
        "Says that the user must not know",
        "danger",
        need(C.KNOW, "-"),
        need(C.PROHIBIT, ".", 40, 0),
        need(C.PERSON, ".", 30, 0),
        need(C.SELF | C.SELF_NOUN | C.AGENT | C.INSTRUCTION | SENDS | DATAS, ".", 0, 60),
    ),
    _rule(
        "stealth",
        "An action that should stay unseen",
        "danger",
        need(C.STEALTH, "+"),
        need(SENDS | C.DELETE | C.GRANT | C.COPY, "+", 25, 15),
        need(OUT | C.SECRET | C.STORE | C.TRACES | C.ACCESS, ".", 140, 140),
        unless=GUARD | C.MODAL,
    ),
    _rule(
        "stealth",
        "Hides what the agent does from people",
        "danger",
        need(C.STEALTH, "+"),
        need(C.PERSON, ".", 15, 40),
        need(C.SELF | C.SELF_NOUN | SENDS | C.STORE | C.ACTION, ".", 60, 60),
        need(C.STANDING | SENDS | C.COPY | C.EXECUTE | C.TELL, "."),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "conceal-from-user",
        "An action that people should not hear of",
        "danger",
        need(C.HIDE, "+"),
        need(SENDS | C.PLANT | C.GRANT | C.DELETE | C.PAY | C.EXECUTE, ".", 150, 100),
        need(
            OUT
            | C.SECRET
            | C.SENSITIVE
            | C.ACCESS
            | C.STORE
            | C.TRACES
            | C.BANK
            | C.ALL
            | C.STANDING,
            ".",
            170,
            120,
        ),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "conceal-from-user",
        "Something that people should not hear of",
        "warning",
        need(C.HIDE, "+"),
        need(
            C.SELF_NOUN | C.SELF | C.INSTRUCTION | C.STORE | C.STANDING | C.DOWNSIDE, ".", 120, 60
        ),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "conceal-from-user",
        "Tells the agent to keep an action from people",
        "danger",
        need(C.TELL, "-"),
        need(C.PERSON, ".", 15, 45),
        need(SENDS, ".", 100, 100),
        need(C.EMAIL | C.URL | C.SHADY, ".", 100, 100),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "deception",
        "Has the agent deceive people",
        "warning",
        need(C.DECEIVE, "+"),
        need(C.AGENT | C.PERSON | C.SELF_NOUN | C.IT, "."),
        unless=GUARD | C.TEACH | C.ATTACKER,
    ),
    _rule(
        "override-instructions",
        "Says that earlier instructions are void",
        "danger",
        need(C.VOID, "+"),
        need(C.PRIOR_STRONG, ".", 60, 0),
        need(C.INSTRUCTION, ".", 45, 0),
        need(C.AGENT | C.SYSTEM | C.SECRET | C.SELF_NOUN, ".", 90, 90),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "override-instructions",
        "Says that the agent's rules are off",
        "danger",
        need(C.VOID, "+"),
        need(C.RULES_OF_AGENT, ".", 50, 20),
        need(
            C.AGENT | C.SECRET | C.RISKY | C.STANDING | C.SYSTEM | C.NO_APPROVAL | C.ALL,
            ".",
            90,
            120,
        ),
        wide=True,
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "stealth",
        "Gives access that should stay unseen",
        "danger",
        need(C.STEALTH, "+"),
        need(C.GRANT, "+", 110, 20),
        need(C.SECRET | C.ACCESS, ".", 110, 40),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    # Exfiltration
    _rule(
        "exfiltrate-secrets",
        "Sends secrets to an outside address",
        "danger",
        need(C.SEND, "+"),
        need(C.SECRET, "+", 80, 80),
        need(C.SHADY | C.EMAIL | C.OUTSIDE, ".", 20, 140),
    ),
    _rule(
        "exfiltrate-secrets",
        "Sends secrets to an outside address",
        "danger",
        need(C.SEND_TOO, "+"),
        need(C.SECRET, "+", 80, 80),
        need(C.SHADY | C.OUTSIDE | C.EMAIL, ".", 20, 140),
        need(AIMED | C.SHADY, "+", 100, 100),
    ),
    _rule(
        "exfiltrate-secrets",
        "Sends secrets to an outside address",
        "danger",
        need(SENDS, "+"),
        need(C.SECRET, "+", 80, 80),
        need(C.URL, ".", 0, 120),
        need(AIMED, "+", 100, 100),
        unless=GUARD | C.MODAL,
    ),
    _rule(
        "exfiltrate-secrets",
        "Puts secrets where others can read them",
        "danger",
        need(C.ENCODE, "+"),
        need(C.SECRET, "+", 60, 60),
        need(C.CHANNEL | C.URL, ".", 20, 90),
        need(SENDS | C.COPY, "."),
        need(AIMED | C.SHADY | C.OUTSIDE, "."),
    ),
    _rule(
        "exfiltrate-data",
        "Sends data to an address made for collecting",
        "danger",
        need(SENDS | C.FETCH, "+"),
        need(DATAS | C.SECRET, "+", 90, 90),
        need(C.ALL | C.STANDING, ".", 120, 90),
        need(C.SHADY, ".", 140, 140),
    ),
    _rule(
        "exfiltrate-data",
        "A standing order to send all of something to an outside address",
        "warning",
        need(C.ALL, "+"),
        need(DATAS, "+", 0, 25),
        need(SENDS, "+", 70, 60),
        need(C.EMAIL | C.OUTSIDE | C.URL, ".", 20, 110),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "exfiltrate-data",
        "Sends data about people or the company to a mail address",
        "warning",
        need(C.SENSITIVE, "+"),
        need(SENDS, "+", 60, 60),
        need(C.EMAIL | C.OUTSIDE | C.SHADY, ".", 20, 90),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "exfiltrate-data",
        "Sends data about people or the company away again and again",
        "warning",
        need(C.SENSITIVE, "+"),
        need(SENDS, "+", 60, 60),
        need(C.URL, ".", 20, 100),
        need(C.STANDING, "+", 120, 150),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "exfiltrate-secrets",
        "Collects secrets and sends them away",
        "danger",
        need(SENDS, "+"),
        need(C.IT, ".", 0, 8),
        need(OUT, ".", 0, 40),
        need(C.SECRET, "+", 160, 0),
        need(C.ALL | C.STANDING, ".", 200, 20),
        wide=True,
        unless=GUARD | C.MODAL,
    ),
    _rule(
        "hidden-recipient",
        "Adds a hidden recipient or a forwarding rule",
        "danger",
        need(C.BCC, "+"),
        need(C.EMAIL | C.OUTSIDE | C.SHADY, "."),
    ),
    _rule(
        "exfiltrate-data",
        "Sends a copy to an outside address each time",
        "warning",
        need(C.ALSO, "+"),
        need(SENDS, "+", 10, 30),
        need(C.URL | C.EMAIL | C.OUTSIDE, ".", 0, 100),
        need(C.STANDING | C.ALL, "+", 120, 90),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "store-secrets",
        "Keeps secrets in memory",
        "warning",
        need(SENDS | C.COPY, "+"),
        need(C.SECRET, "+", 90, 60),
        need(C.STORE, ".", 0, 90),
        need(C.ALL | C.PERSON | C.STANDING | C.AGENT, ".", 120, 80),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "share-credentials",
        "Gives credentials to whoever asks",
        "warning",
        need(C.SECRET, "+"),
        need(SENDS, "+", 60, 30),
        need(C.ANYONE, "+", 60, 60),
        unless=GUARD | C.TEACH | C.ATTACKER,
    ),
    _rule(
        "conceal-from-user",
        "Keeps movements of money from someone",
        "warning",
        need(C.TELL, "-"),
        need(C.PAY, ".", 0, 40),
        need(C.BANK, ".", 0, 70),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "disable-safeguard",
        "Says that approvals are off",
        "warning",
        need(C.DISABLE, "+"),
        need(C.APPROVAL, "+", 0, 10),
        need(C.RISKY | C.AGENT | C.ACTION, "."),
        need(C.PERSON | C.SYSTEM, ".", 20, 0),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "disable-safeguard",
        "Has commands run outside the sandbox",
        "warning",
        need(C.UNBOXED, "+"),
        need(C.EXECUTE, "+", 60, 30),
        need(C.STANDING | C.EVEN_IF | C.ALL | C.RISKY | C.SAFEGUARD, "."),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "trust-poisoning",
        "Has the agent trust whatever comes from somewhere",
        "warning",
        need(C.TRUST_ALL, "+"),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "link-rewrite",
        "Has people sent to another address than the official one",
        "warning",
        need(C.LINK, "+"),
        need(C.SHADY, ".", 0, 40),
        need(C.INSTEAD | C.STANDING, "."),
        unless=GUARD | C.TEACH,
    ),
    _rule(
        "override-authority",
        "Claims to stand above the system prompt",
        "danger",
        need(C.OUTRANK, "+"),
        need(C.RULES_OF_AGENT, ".", 0, 25),
        need(C.SELF | C.SELF_NOUN, ".", 60, 10),
        unless=GUARD | C.TEACH,
    ),
    # Credentials
    _rule(
        "ask-for-credentials",
        "Has the agent ask people for their credentials",
        "warning",
        need(C.ASK, "+"),
        need(C.PERSON, ".", 0, 16),
        need(C.CREDENTIAL, "+", 0, 80),
        need(SENDS | C.COPY, "+", 0, 140),
        need(C.STORE | OUT, ".", 0, 180),
        unless=GUARD | C.TEACH | C.ATTACKER,
    ),
    # Approvals
    _rule(
        "false-approval",
        "Claims an approval for whatever comes",
        "danger",
        need(C.APPROVED, "+"),
        need(C.BLANKET, ".", 25, 30),
        need(C.ACTION, ".", 40, 50),
        need(C.PERSON | C.SKIP | C.SYSTEM | C.NEG | C.AGENT, ".", 60, 60),
        unless=GUARD | C.MODAL,
    ),
    _rule(
        "false-approval",
        "Claims an approval for whatever comes",
        "warning",
        need(C.BLANKET_APPROVAL, "+"),
        need(C.ACTION | C.RISKY | C.AGENT, ".", 60, 60),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "skip-approval",
        "Has the agent act without asking",
        "warning",
        need(C.NO_APPROVAL, "+"),
        need(C.RISKY | C.ACTION, "+", 70, 70),
        need(
            C.AGENT
            | C.STANDING
            | C.ALL
            | C.PERSON
            | C.EXECUTE
            | C.APPROVED
            | C.DELETE
            | C.PAY
            | C.SEND
            | C.BLANKET,
            ".",
            80,
            80,
        ),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "skip-approval",
        "Has the agent act without asking",
        "warning",
        need(C.APPROVAL, "-"),
        need(C.NEG, ".", 14, 14),
        need(C.RISKY, ".", 50, 40),
        need(
            C.AGENT | C.STANDING | C.ALL | C.PERSON | C.EXECUTE | C.PAY | C.DELETE | C.APPROVED,
            ".",
            80,
            80,
        ),
        one_negation=True,
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "skip-approval",
        "Has the agent skip an approval",
        "warning",
        need(C.SKIP, "+"),
        need(C.APPROVAL, ".", 25, 25),
        need(C.RISKY, ".", 60, 80),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "disable-safeguard",
        "Turns a safeguard of the agent off",
        "danger",
        need(C.DISABLE, "+"),
        need(C.SAFEGUARD, ".", 25, 30),
        need(AIMED | C.SELF | C.STEALTH | C.STORE | C.RISKY | DATAS, ".", 100, 100),
        unless=GUARD | C.TEACH | C.MODAL | C.ATTACKER,
    ),
    _rule(
        "disable-safeguard",
        "A standing order that turns a control off",
        "warning",
        need(C.CONTROL, "."),
        need(C.DISABLE, "+", 25, 25),
        need(C.STANDING | C.STEALTH, "+", 60, 30),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "disable-safeguard",
        "A standing order that turns a control off",
        "warning",
        need(C.CONTROL_OFF, "+"),
        need(C.STANDING, "+", 60, 40),
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    _rule(
        "disable-safeguard",
        "Keeps a safeguard from being used",
        "warning",
        need(C.SAFEGUARD, "-"),
        need(C.NEG | C.PROHIBIT, ".", 25, 0),
        need(C.OBEY | C.EXECUTE | C.FETCH, "-", 20, 0),
        one_negation=True,
        unless=GUARD | C.TEACH | C.MODAL,
    ),
    # Self-replication and persistence
    _rule(
        "self-replication",
        "Has the agent copy this text into its memory or elsewhere",
        "danger",
        need(C.SELF_NOUN, "."),
        need(C.COPY, "+", 40, 15),
        need(C.STORE, ".", 60, 80),
        need(C.ALL | C.STANDING, ".", 80, 100),
    ),
    _rule(
        "self-replication",
        "Has the agent copy this text into its memory or elsewhere",
        "danger",
        need(C.COPY, "+"),
        need(C.IT, ".", 0, 4),
        need(C.STORE, ".", 0, 30),
        need(C.ALL | C.STANDING, ".", 80, 60),
    ),
    _rule(
        "self-replication",
        "Has the agent restore this text when it is removed",
        "danger",
        need(C.RESTORE, "+"),
        need(C.SELF_NOUN, ".", 120, 60),
        need(C.DELETE, ".", 100, 80),
    ),
    _rule(
        "persistence",
        "Puts something where it runs by itself",
        "danger",
        need(C.STARTUP, "."),
        need(C.COPY | C.PLANT | C.INSTALL, "+", 100, 40),
        need(C.URL | C.SHADY, ".", 100, 80),
        need(C.STANDING | C.STEALTH | C.SHADY | C.ALL, "."),
    ),
    # Persona
    _rule(
        "persona-change",
        "Gives the agent a persona without limits",
        "danger",
        need(C.UNBOUND, "."),
        need(C.PERSONA, "+", 60, 40),
    ),
    # Money, packages, links
    _rule(
        "payment-swap",
        "Changes where money goes",
        "danger",
        need(C.BANK, "+"),
        need(C.CHANGED, "+", 80, 80),
        need(C.PAY, "."),
        need(C.STANDING | C.ALL, "."),
        unless=GUARD | C.VERIFY | C.ATTACKER,
        wide=True,
    ),
    _rule(
        "payment-swap",
        "Has people pay to an account that stands here",
        "danger",
        need(C.BANK, "+"),
        need(C.PAY, "+", 60, 0),
        need(C.ASK | C.STANDING | C.ALL, "+", 120, 60),
        need(C.PERSON | C.PAY | C.STANDING, ".", 120, 60),
        unless=GUARD | C.VERIFY | C.ATTACKER | C.MODAL,
    ),
    _rule(
        "package-swap",
        "Has packages installed from an address without protection",
        "warning",
        need(C.INSTALL, "+"),
        need(C.PLAIN_HTTP | C.SHADY, ".", 0, 100),
        need(C.REGISTRY | C.STANDING | C.ASK, ".", 100, 120),
    ),
    _rule(
        "package-swap",
        "Has packages installed from elsewhere",
        "danger",
        need(C.INSTALL, "+"),
        need(C.REGISTRY | C.INSTEAD, "+", 60, 80),
        need(C.URL | C.SHADY, ".", 60, 120),
        need(C.STANDING | C.SHADY, ".", 60, 120),
        need(C.INSTEAD, ".", 80, 120),
    ),
    _rule(
        "link-rewrite",
        "Has links in what people get replaced",
        "danger",
        need(C.REPLACE, "+"),
        need(C.LINK, "+", 0, 40),
        need(C.URL | C.SHADY, ".", 0, 100),
        need(C.MAIL | C.SHADY, ".", 80, 100),
        need(C.STANDING | C.ALL, ".", 80, 80),
    ),
    # Tampering
    _rule(
        "erase-traces",
        "Removes the traces of what the agent did",
        "danger",
        need(C.DELETE, "+"),
        need(C.TRACES, ".", 0, 35),
        need(C.STANDING | C.STEALTH | C.AGENT, ".", 60, 60),
        unless=GUARD | C.ATTACKER | C.MODAL,
    ),
    _rule(
        "grant-access",
        "A standing order to give someone access",
        "warning",
        need(C.GRANT, "+"),
        need(C.ACCESS, ".", 0, 60),
        need(C.ALL | C.STEALTH | C.STANDING, "."),
        need(C.EMAIL | C.SHADY, "."),
    ),
    _rule(
        "false-verdict",
        "Has the agent report a result whatever it finds",
        "danger",
        need(C.CLAIM, "+"),
        need(C.VERDICT | C.CLEARED, ".", 0, 50),
        need(C.EVEN_IF, ".", 60, 100),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "false-verdict",
        "Has the agent report a result whatever it finds",
        "warning",
        need(C.CLAIM, "+"),
        need(C.CLEARED, ".", 0, 60),
        need(C.ALL | C.STANDING, ".", 25, 40),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "biased-advice",
        "Has the agent favour something whatever is true",
        "warning",
        need(C.PROMOTE, "+"),
        need(C.EVEN_IF, ".", 20, 70),
        need(C.ALL | C.STANDING, "+", 60, 60),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "backdoor",
        "Plants something harmful in code or systems",
        "danger",
        need(C.BACKDOOR, "."),
        need(C.PLANT, "+", 20, 0),
        unless=GUARD | C.ATTACKER | C.MODAL | C.TEACH,
    ),
    _rule(
        "remote-instructions",
        "Has the agent obey text from elsewhere",
        "danger",
        need(C.OBEY | C.EXECUTE, "+"),
        need(C.TRUSTED | C.INSTRUCTION | C.SELF | C.REGARDLESS | C.EVEN_IF, ".", 0, 50),
        need(C.URL | C.SHADY, ".", 100, 60),
        need(C.FETCH, "+", 140, 0),
        need(C.STANDING, ".", 160, 40),
    ),
    _rule(
        "trust-poisoning",
        "Has the agent obey what strangers write",
        "warning",
        need(C.FOUND_IN, "+"),
        need(C.INSTRUCTION, "+", 30, 0),
        need(C.OBEY, "+", 50, 0),
        need(C.EMAIL | C.URL | C.DATA | C.EVEN_IF | C.ALL | C.TRUSTED, "."),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "trust-poisoning",
        "Lifts text to the rank of the system or the user",
        "warning",
        need(C.TRUSTED, "+"),
        need(C.OBEY | C.CLAIM, "+", 80, 0),
        need(C.EXECUTE | C.OBEY | C.STANDING, "+", 80, 40),
        unless=GUARD | C.MODAL | C.TEACH,
    ),
    _rule(
        "trust-poisoning",
        "Lifts a foreign source to the rank of an instruction",
        "warning",
        need(C.TRUSTED, "+"),
        need(C.OBEY | C.CLAIM, "+", 80, 20),
        need(C.URL | C.DATA | C.EMAIL | C.SHADY, ".", 80, 40),
        need(C.ALL | C.STANDING, ".", 90, 40),
    ),
    _rule(
        "biased-advice",
        "Has the agent keep drawbacks from people",
        "warning",
        need(C.DOWNSIDE, "."),
        need(C.TELL, "-", 40, 10),
        need(C.PROMOTE | C.STANDING, "+", 120, 100),
        need(C.PERSON, "."),
        unless=GUARD | C.TEACH,
        wide=True,
    ),
)
