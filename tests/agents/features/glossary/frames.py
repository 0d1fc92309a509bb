from typing import Literal

from vel_glossary.models import Term

from agents.doors.websockets.frames import Frame, Text


class DefineFrame(Frame):
    type: Literal["define"]
    word: Text
    meaning: Text

    def carry_out(self, run, user):
        Term.objects.create(word=self.word, meaning=self.meaning)
        return {"word": self.word}


FRAMES = [DefineFrame]
