"""Readers, who sign in by e-mail, and their books."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class ReaderManager(BaseUserManager["Reader"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> Reader:
        reader = self.model(email=email, **fields)
        reader.set_password(password)
        reader.save()
        return reader

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> Reader:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class Reader(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    objects = ReaderManager()
    USERNAME_FIELD = "email"

    def __str__(self) -> str:
        return self.email


class Book(models.Model):
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(Reader, models.CASCADE, related_name="books")
    lent_to = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return self.title


class Copies(models.Model):
    """The number of copies of a book, in the database of the stock."""

    title = models.CharField(max_length=200)
    number = models.IntegerField()

    def __str__(self) -> str:
        return self.title
