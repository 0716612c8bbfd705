"""The body of an answer as it comes in, decompressed and never larger than it may be."""

from __future__ import annotations

import io
import zlib
from typing import Any

# How many bytes are decompressed at once.
PIECE = 1_000_000
DECOMPRESSED = ("gzip", "x-gzip", "deflate")


class AnswerTooLargeError(Exception):
    """More came than the settings permit."""


class UnreadableBodyError(Exception):
    """The body is not what its Content-Encoding says."""


class Body:
    """
    Collects a body piece by piece.

    :param encoding: the Content-Encoding; ``None`` if the answer names none
    :param limit: maximum bytes, before and after decompression
    :raises UnreadableBodyError: for another encoding than those that were asked for
    """

    def __init__(self, encoding: str | None, limit: int) -> None:
        self._limit = limit
        self._received = 0
        self._content = io.BytesIO()
        name = (encoding or "identity").strip().lower()
        if name not in ("identity", *DECOMPRESSED):
            msg = f"Content-Encoding {name[:40]} was not asked for"
            raise UnreadableBodyError(msg)
        self._packed = name in DECOMPRESSED
        self._deflate = name == "deflate"
        # With these window bits zlib tells by the first bytes whether they are gzip or zlib.
        self._unpacker: Any = zlib.decompressobj(47) if self._packed else None

    def add(self, piece: bytes) -> None:
        """
        Add what came.

        :raises AnswerTooLargeError: if it is too much; whatever it would grow to is not in memory
        :raises UnreadableBodyError: if it cannot be decompressed
        """
        if self._deflate and not self._received and piece[0] & 0x0F != 8:
            self._unpacker = zlib.decompressobj(-15)  # a deflate without the wrapping that belongs to it
        self._received += len(piece)
        if self._received > self._limit:
            raise AnswerTooLargeError
        if self._packed:
            self._unpack(piece)
        else:
            self._keep(piece)

    def whole(self) -> bytes:
        """
        Return the body.

        :raises UnreadableBodyError: if a compressed one is cut off
        """
        if self._packed and self._received:
            self._unpack(b"")
            if not self._unpacker.eof:
                msg = "the compressed body is cut off"
                raise UnreadableBodyError(msg)
        return self._content.getvalue()

    def _unpack(self, piece: bytes) -> None:
        while True:
            if self._unpacker.eof and piece:  # several gzip members, one after the other
                self._unpacker = zlib.decompressobj(47)
            try:
                unpacked = self._unpacker.decompress(piece, PIECE)
            except zlib.error as error:
                msg = f"the body cannot be decompressed ({error})"
                raise UnreadableBodyError(msg) from None
            self._keep(unpacked)
            piece = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            if not piece and len(unpacked) < PIECE:
                return

    def _keep(self, piece: bytes) -> None:
        if self._content.tell() + len(piece) > self._limit:
            raise AnswerTooLargeError
        self._content.write(piece)
