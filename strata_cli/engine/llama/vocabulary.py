"""Text to tokens and back, over the vocabulary of one model."""

from __future__ import annotations

import ctypes
from typing import Any

from strata_cli.engine import Token
from strata_cli.errors import INVALID_REQUEST, INVALID_TEXT, StrataError

_LONGEST_TEXT = 2**31 - 1
# Larger than any token; a longer one is asked for again with its exact size.
_PIECE = 256


class Vocabulary:
    """The vocabulary of an open model; its methods fail once the model is closed."""

    def __init__(self, api: Any, model: int) -> None:
        self._api = api
        self._handle = api.llama_model_get_vocab(model)
        self.size: int = api.llama_vocab_n_tokens(self._handle)
        self._bos: int = api.llama_vocab_bos(self._handle)
        self._adds_bos: bool = api.llama_vocab_get_add_bos(self._handle) and self._bos >= 0
        self._buffer = ctypes.create_string_buffer(_PIECE)
        self._data: dict[int, bytes] = {}
        self._tokens: dict[int, Token] = {}

    def tokenize(self, text: str) -> list[int]:
        """The whole text's tokens, special tokens parsed, BOS added where it is wanted and not there.

        Raises INVALID_TEXT for lone surrogates and NUL characters, which no vocabulary spells.
        """
        data = _encode(text)
        # A token is rarely shorter than two bytes: a second try is rare, and a buffer for the worst case is large.
        count, tokens = self._tokenize(data, len(data) // 2 + 16)
        if count < 0:
            count, tokens = self._tokenize(data, -count)
        if count < 0:
            raise StrataError(INVALID_TEXT, f"The text of {len(data):,} bytes cannot be tokenised.")
        if self._adds_bos and not (count and tokens[1] == self._bos):
            tokens[0] = self._bos
            return tokens[: count + 1]
        return tokens[1 : count + 1]

    def _tokenize(self, data: bytes, room: int) -> tuple[int, Any]:
        # The first place is left for BOS. llama.cpp's own `add_special` would add EOS too, and BOS a second time.
        tokens = (ctypes.c_int32 * (room + 1))()
        place = ctypes.cast(ctypes.byref(tokens, ctypes.sizeof(ctypes.c_int32)), self._api.llama_token_p)
        return self._api.llama_tokenize(self._handle, data, len(data), place, room, False, True), tokens

    def data(self, token: int) -> bytes:
        """The bytes of a token, special tokens as their text; raises INVALID_REQUEST for a number that is no token."""
        data = self._data.get(token)
        if data is None:
            if not 0 <= token < self.size:
                raise StrataError(INVALID_REQUEST, f"{token} is no token: this vocabulary has {self.size:,}.")
            data = self._data[token] = self._piece(token)
        return data

    def _piece(self, token: int) -> bytes:
        size = self._api.llama_token_to_piece(self._handle, token, self._buffer, len(self._buffer), 0, True)
        if size < 0:
            self._buffer = ctypes.create_string_buffer(-size)
            size = self._api.llama_token_to_piece(self._handle, token, self._buffer, -size, 0, True)
        return self._buffer.raw[: max(size, 0)]

    def spelling(self, token: int) -> bytes | None:
        """The bytes that a token stands for in ordinary text, None for one that is never part of any."""
        size = self._api.llama_token_to_piece(self._handle, token, self._buffer, len(self._buffer), 0, False)
        data = self._buffer.raw[:size] if size >= 0 else self.data(token)
        # Tags that are tokens of their own, <think> among them, are no control tokens in every file.
        tag = data[:1] == b"<" and data[-1:] == b">" and len(data) > 2 and self._own(token)
        return None if not data or tag else data

    def _own(self, token: int) -> bool:
        return bool(self._api.llama_vocab_get_attr(self._handle, token) & self._api.LLAMA_TOKEN_ATTR_USER_DEFINED)

    @property
    def handle(self) -> int:
        """llama.cpp's own vocabulary."""
        return self._handle

    def token(self, token: int) -> Token:
        """A token as a generation yields it."""
        known = self._tokens.get(token)
        if known is None:
            ends = self.ends(token)
            known = Token(token, b"" if ends else self.data(token), ends, control=self.controls(token))
            self._tokens[token] = known
        return known

    def text(self, token: int) -> str:
        """A special token's text, empty for the -1 of a vocabulary that lacks it."""
        return self.data(token).decode("utf-8", "replace") if token >= 0 else ""

    @property
    def bos(self) -> str:
        return self.text(self._bos)

    @property
    def eos(self) -> str:
        return self.text(self._api.llama_vocab_eos(self._handle))

    def ends(self, token: int) -> bool:
        """Whether the token ends a generation."""
        return self._api.llama_vocab_is_eog(self._handle, token)

    def controls(self, token: int) -> bool:
        """Whether the token is a control token, which is no part of a text."""
        return self._api.llama_vocab_is_control(self._handle, token)

    def suppressed(self) -> list[int]:
        """Tokens that the model's file wants never to be sampled."""
        count = ctypes.c_int32()
        tokens = self._api.llama_vocab_get_suppress_tokens(self._handle, ctypes.byref(count))
        return [tokens[index] for index in range(count.value)]


def _encode(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StrataError(
            INVALID_TEXT, f"The text holds half of a surrogate pair (U+{ord(text[error.start]):04X}) at {error.start}."
        ) from None
    if (place := data.find(0)) >= 0:
        raise StrataError(INVALID_TEXT, f"The text holds a NUL byte at {place}; it is not text.")
    if len(data) > _LONGEST_TEXT:
        raise StrataError(
            INVALID_TEXT, f"The text has {len(data):,} bytes; at most {_LONGEST_TEXT:,} can be tokenised."
        )
    return data
