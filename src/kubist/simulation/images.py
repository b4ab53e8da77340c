"""Images that cannot be pulled. No registry is asked: the name or tag of the image says that it does not exist."""

from __future__ import annotations

import re

from kubist.caching import bounded_cache

_is_missing = re.compile(
    "([a-z0-9._-]*[._-])?(non-?existent|does-?not-?exist|no-?such-?(image|tag|version))([._-].*)?"
).fullmatch


@bounded_cache(entries=1024, key_length=512)
def is_missing(image: str) -> bool:
    """Whether the last part of an image's name, or its tag, is a word such as `non-existent`, or its tag is `404`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return tag == "404" or any(_is_missing(part.lower()) for part in (name, tag))
