"""Letters of other scripts that look like Latin letters."""

from __future__ import annotations

_PAIRS = (
    "аa вb еe ёe кk мm нh оo рp сc тt уy хx ѕs іi їi јj ԛq ԝw ԁd һh ӏl ɡg гr пn иu "
    "АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ЅS ІI ЇI ЈJ ԚQ ԜW Ԍg ҮY "
    "αa βb εe ηn ιi κk νv οo ρp τt υu χx γy ωw ςs "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX "
    "օo սu ոn հh ցg զq ԍg Ꭺa Ꭰd Ꭼe Ꮋh Ꭵi Ꮮl Ꮇm Ꮲp Ꮪs Ꭲt Ꮩv Ꮃw "
    "ɑa ɩi ɪi ʀr ѡw ᴀa ʙb ᴄc ᴅd ᴇe ɢg ʜh ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz ꓲi ꓳo"
)
LOOKALIKES: dict[str, str] = {pair[0]: pair[1].lower() for pair in _PAIRS.split()}
TABLE = {ord(letter): ord(latin) for letter, latin in LOOKALIKES.items()}
