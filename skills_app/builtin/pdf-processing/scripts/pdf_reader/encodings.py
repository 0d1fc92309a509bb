"""Map codes and names of glyphs to characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LIGATURES = {"ff": "ff", "fi": "fi", "fl": "fl", "ffi": "ffi", "ffl": "ffl", "f_f": "ff"}
_ACCENTS = {
    "grave": "\u0300", "acute": "\u0301", "circumflex": "\u0302", "tilde": "\u0303",
    "macron": "\u0304", "breve": "\u0306", "dotaccent": "\u0307", "dieresis": "\u0308",
    "ring": "\u030a", "hungarumlaut": "\u030b", "caron": "\u030c", "cedilla": "\u0327",
    "ogonek": "\u0328", "commaaccent": "\u0327",
}  # fmt: skip
_LISTED = """
exclam=! quotedbl=" numbersign=# dollar=$ percent=% ampersand=& quotesingle=' parenleft=(
parenright=) asterisk=* plus=+ comma=, hyphen=- period=. slash=/ zero=0 one=1 two=2 three=3
four=4 five=5 six=6 seven=7 eight=8 nine=9 colon=: semicolon=; less=< equal== greater=>
question=? at=@ bracketleft=[ backslash=\\ bracketright=] asciicircum=^ underscore=_ grave=`
braceleft={ bar=| braceright=} asciitilde=~ exclamdown=¡ cent=¢ sterling=£ currency=¤ yen=¥
brokenbar=¦ section=§ dieresis=¨ copyright=© ordfeminine=ª guillemotleft=« logicalnot=¬
registered=® macron=¯ degree=° plusminus=± twosuperior=² threesuperior=³ acute=´ mu=µ
paragraph=¶ periodcentered=· middot=· cedilla=¸ onesuperior=¹ ordmasculine=º guillemotright=»
onequarter=¼ onehalf=½ threequarters=¾ questiondown=¿ AE=Æ ae=æ Eth=Ð eth=ð multiply=× divide=÷
Oslash=Ø oslash=ø Thorn=Þ thorn=þ germandbls=ß dotlessi=ı dotlessj=ȷ Lslash=Ł lslash=ł OE=Œ oe=œ
Dcroat=Đ dcroat=đ Hbar=Ħ hbar=ħ florin=ƒ circumflex=ˆ caron=ˇ breve=˘ dotaccent=˙ ring=˚
ogonek=˛ tilde=˜ hungarumlaut=˝ endash=– emdash=— quoteleft=‘ quoteright=’ quotesinglbase=‚
quotedblleft=“ quotedblright=” quotedblbase=„ dagger=† daggerdbl=‡ bullet=• ellipsis=…
perthousand=‰ guilsinglleft=‹ guilsinglright=› fraction=⁄ Euro=€ trademark=™ minus=− arrowleft=←
arrowup=↑ arrowright=→ arrowdown=↓ infinity=∞ lessequal=≤ greaterequal=≥ notequal=≠
approxequal=≈ summation=∑ product=∏ radical=√ integral=∫ partialdiff=∂ Delta=∆ Omega=Ω element=∈
emptyset=∅ lozenge=◊ Alpha=Α Beta=Β Gamma=Γ Epsilon=Ε Zeta=Ζ Eta=Η Theta=Θ Iota=Ι Kappa=Κ
Lambda=Λ Mu=Μ Nu=Ν Xi=Ξ Omicron=Ο Pi=Π Rho=Ρ Sigma=Σ Tau=Τ Upsilon=Υ Phi=Φ Chi=Χ Psi=Ψ alpha=α
beta=β gamma=γ delta=δ epsilon=ε epsilon1=ε zeta=ζ eta=η theta=θ iota=ι kappa=κ lambda=λ nu=ν
xi=ξ omicron=ο pi=π rho=ρ sigma=σ sigma1=ς tau=τ upsilon=υ phi=φ phi1=ϕ chi=χ psi=ψ omega=ω
club=♣ diamond=♦ heart=♥ spade=♠ check=✓ angbracketleft=⟨ angbracketright=⟩ arrowdblright=⇒
arrowdblleft=⇐ asteriskmath=∗ bulletoperator=∙ equivalence=≡ prime=′ similar=∼ proportional=∝
gradient=∇ universal=∀ existential=∃ logicaland=∧ logicalor=∨ union=∪ intersection=∩
visiblespace=␣ hyphenminus=- tcommaaccent=ţ Tcommaaccent=Ţ circlecopyrt=© copyrightserif=©
registersans=® trademarkserif=™
"""
_NAMES = dict(pair.split("=", 1) for pair in _LISTED.split())
_NAMES |= {"sfthyphen": "\xad", "nbspace": "\xa0", "nonbreakingspace": "\xa0", "softhyphen": "\xad"}

_STANDARD_UPPER = {
    0xA1: "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ", 0xB1: "–†‡·", 0xB6: "¶•‚„”»…‰", 0xBF: "¿", 0xC1: "`´ˆ˜¯˘˙¨",
    0xCA: "˚¸", 0xCD: "˝˛ˇ—", 0xE1: "Æ", 0xE3: "ª", 0xE8: "ŁØŒº", 0xF1: "æ", 0xF5: "ı",
    0xF8: "łøœß",
}  # fmt: skip


def _standard() -> dict[int, str]:
    codes = {code: chr(code) for code in range(32, 127)} | {39: "’", 96: "‘"}
    for first, characters in _STANDARD_UPPER.items():
        codes.update({first + at: spread(each) for at, each in enumerate(characters)})
    return codes


def spread(text: str) -> str:
    """Return `text` with ligatures replaced by letters, because people search for plain letters."""
    return "".join(
        unicodedata.normalize("NFKC", each) if "\ufb00" <= each <= "\ufb06" else each
        for each in text
    )


def _codec(name: str) -> dict[int, str]:
    codes = {}
    for code in range(32, 256):
        text = bytes([code]).decode(name, "ignore")
        if text:
            codes[code] = text
    return codes


STANDARD = _standard()
WIN_ANSI = _codec("cp1252") | {0x7F: "•", 0x81: "•", 0x8D: "•", 0x8F: "•", 0x90: "•", 0x9D: "•"}
MAC_ROMAN = _codec("mac_roman")
BY_NAME = {
    "StandardEncoding": STANDARD,
    "WinAnsiEncoding": WIN_ANSI,
    "MacRomanEncoding": MAC_ROMAN,
}

CMAP_CODECS = {
    "UTF16": "utf-16-be", "UCS2": "utf-16-be", "GBK": "gbk", "GBKp": "gbk", "GB": "gb2312",
    "GBpc": "gb2312", "90ms": "cp932", "90pv": "cp932", "KSCms": "cp949", "KSC": "euc_kr",
    "ETen": "big5", "B5pc": "big5", "EUC": "euc_jp",
}  # fmt: skip
"""The Python codec for the first or second part of a predefined CMap's name."""


def glyph_text(name: str) -> str:
    """Return the characters of the glyph called `name`, "" if it is unknown."""
    base = name.partition(".")[0]
    if base in LIGATURES:
        return LIGATURES[base]
    if base in _NAMES:
        return _NAMES[base]
    if base == "space":
        return " "
    if len(base) == 1:
        return base
    if "_" in base:
        return "".join(glyph_text(part) for part in base.split("_"))
    found = re.fullmatch(r"uni((?:[0-9A-F]{4})+)", base)
    if found:
        return _points(found[1][at : at + 4] for at in range(0, len(found[1]), 4))
    found = re.fullmatch(r"u([0-9A-F]{4,6})", base)
    if found:
        return _points([found[1]])
    accent = _ACCENTS.get(base[1:])
    if accent:
        return unicodedata.normalize("NFC", base[0] + accent)
    return ""


def _points(digits: Iterable[str]) -> str:
    numbers = [int(each, 16) for each in digits]
    return "".join(
        chr(number) for number in numbers if number < 0x110000 and not 0xD800 <= number < 0xE000
    )
