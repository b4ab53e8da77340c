from __future__ import annotations

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.base.http.http2.hpack import NO_TABLE, Decoder, HpackError, encode

NAMES = st.sampled_from([b":path", b":status", b"accept", b"x-a", b"x-b", b"content-length"]) | st.binary(
    max_size=20
)
LISTS = st.lists(
    st.tuples(NAMES, st.binary(max_size=300) | st.sampled_from([b"", b"200", b"gzip"])), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(blocks=st.lists(LISTS, max_size=8), table=st.sampled_from([None, 0, 100, 4096]))
def test_decoder_reads_headers_of_the_hpack_package(
    blocks: list[list[tuple[bytes, bytes]]], table: int | None
) -> None:
    encoder, decoder = hpack.Encoder(), Decoder(1 << 20, 1000)
    if table is not None:
        encoder.header_table_size = table
    for headers in blocks:
        assert decoder.decode(encoder.encode(headers, huffman=len(headers) % 2 == 0))[0] == headers


@settings(max_examples=60, deadline=None)
@given(headers=LISTS)
def test_hpack_package_reads_encoded_headers(headers: list[tuple[bytes, bytes]]) -> None:
    data = NO_TABLE + b"".join(encode(name, value) for name, value in headers)
    decoder = hpack.Decoder()
    assert decoder.decode(data, raw=True) == [(name.lower(), value) for name, value in headers]


@settings(max_examples=300, deadline=None)
@given(block=st.binary(max_size=60))
def test_any_header_block_is_decoded_or_rejected(block: bytes) -> None:
    ours, theirs = Decoder(1 << 20, 1000), hpack.Decoder()
    try:
        expected = theirs.decode(block, raw=True)
    except hpack.HPACKError:
        return
    try:
        assert ours.decode(block)[0] == expected
    except HpackError:
        pytest.fail("refused what is valid")
