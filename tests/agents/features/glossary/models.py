from django.db import models


class Term(models.Model):
    word = models.CharField(max_length=100, unique=True)
    meaning = models.TextField()

    class Meta:
        ordering = ["word"]

    def __str__(self) -> str:
        return self.word
