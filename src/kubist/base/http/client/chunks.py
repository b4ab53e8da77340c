"""Parser for chunked bodies of HTTP/1.1 responses, in linear time, with the limits of Go's HTTP client."""

from __future__ import annotations

LINE_LIMIT = 4096
"""Maximum bytes of the line before a chunk: its size and its extensions."""
TRAILER_LIMIT = 4096
"""Maximum bytes of all trailers."""
CHUNK_FRAMING = 16
"""Bytes of framing that each chunk may have, besides twice its content."""
EXCESS_LIMIT = 16 << 10
"""Maximum bytes of framing beyond that."""

_TOO_MUCH_FRAMING = "chunked encoding contains too much non-data"


class Chunks:
    """Chunked body that is parsed as it arrives."""

    __slots__ = ("_at_end", "_excess", "_framing", "_framing_limit", "_left", "_line", "_trailers", "done")

    def __init__(self, framing_limit: int = 0) -> None:
        """`framing_limit`: maximum bytes of framing beyond the bytes of content. 0 for a stream, which may go on for
        days with one byte in each chunk."""
        self.done = False
        self._framing_limit = framing_limit
        self._framing = 0
        self._excess = 0
        self._left = 0
        """Bytes of the current chunk that have not arrived."""
        self._at_end = False
        """Whether the line break after the content of a chunk is next."""
        self._trailers = -1
        """Bytes of trailers. Negative before the last chunk."""
        self._line = b""
        """Start of a line whose end has not arrived."""

    def feed(self, data: bytes) -> tuple[bytearray, bytes, int]:
        """Content of the data, the bytes after the end of the body, and the number of lines of framing. ValueError if
        the data is malformed or a limit is exceeded."""
        if self._line:
            data = self._line + data
            self._line = b""
        content = bytearray()
        place, end, lines = 0, len(data), 0
        while place < end and not self.done:
            if self._left:
                part = data[place : place + self._left]
                content += part
                place += len(part)
                self._left -= len(part)
                self._at_end = not self._left
                continue
            line_end = data.find(b"\n", place, place + LINE_LIMIT) + 1
            if not line_end:
                if end - place >= LINE_LIMIT:
                    raise ValueError("header line too long")
                self._line = data[place:]
                place = end
                break
            self._framing_line(data[place:line_end])
            place = line_end
            lines += 1
        return content, data[place:], lines

    def _framing_line(self, line: bytes) -> None:
        if self._at_end:
            if line != b"\r\n":
                raise ValueError("malformed chunked encoding")
            self._at_end = False
        elif self._trailers < 0:
            self._start_chunk(line)
        else:
            self._trailers += len(line)
            if self._trailers > TRAILER_LIMIT:
                raise ValueError("http: suspiciously long trailer after chunked body")
            self.done = not line.strip()

    def _start_chunk(self, line: bytes) -> None:
        size = self._left = _size(line.partition(b";")[0].strip())
        framing = len(line) + len(b"\r\n")
        self._framing += framing - size
        self._excess = max(self._excess + framing - CHUNK_FRAMING - 2 * size, 0)
        if self._excess > EXCESS_LIMIT or 0 < self._framing_limit < self._framing:
            raise ValueError(_TOO_MUCH_FRAMING)
        if not size:
            self._trailers = 0


def _size(digits: bytes) -> int:
    """Size of a chunk. int() alone would also accept signs, underscores and prefixes."""
    if not digits:
        raise ValueError("empty hex number for chunk length")
    if len(digits) > 16:
        raise ValueError("http chunk length too large")
    try:
        if digits.isalnum():
            return int(digits, 16)
    except ValueError:
        pass
    raise ValueError("invalid byte in chunk length")
