from typing import Literal

from pydantic import Field
from vel_glossary.models import Term

from agents.doors.websockets.frames import Frame, Text
from agents.services.errors import NotAllowed


class DefineFrame(Frame):
    type: Literal["define"]
    word: Text = Field(max_length=100)
    meaning: Text

    def carry_out(self, run, user):
        if not user.has_perm("vel_glossary.change_term"):
            raise NotAllowed("You may not change the glossary.")
        Term.objects.update_or_create(word=self.word, defaults={"meaning": self.meaning})
        return {"word": self.word}


FRAMES = [DefineFrame]
