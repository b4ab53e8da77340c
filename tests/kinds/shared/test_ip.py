import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.api.kinds.shared import ip


@pytest.mark.parametrize(
    ("text", "parsed", "legacy", "canonical"),
    [
        ("10.9.8.7", "10.9.8.7", True, True),
        ("010.9.8.7", "10.9.8.7", False, False),
        ("::ffff:1.2.3.4", "1.2.3.4", False, False),
        ("2001:DB8:0::1", "2001:db8::1", True, False),
        ("2001:db8::1", "2001:db8::1", True, True),
        ("fe80::1%eth0", None, False, False),
        ("1.2.3", None, False, False),
        ("1.2.3.256", None, False, False),
        ("", None, False, False),
    ],
)
def test_address_forms(text: str, parsed: str | None, legacy: bool, canonical: bool) -> None:
    found = ip.parse_ip(text)
    assert (str(found) if found else None) == parsed
    assert (ip.validate_ip(text, "f") == []) is legacy
    assert (ip.validate_canonical_ip(text, "f") == []) is canonical
    assert ip.validate_ip(text, "f", old=[text]) == []


@pytest.mark.parametrize(
    ("text", "legacy", "canonical"),
    [
        ("10.0.0.0/8", True, True),
        ("10.0.0.1/8", False, False),
        ("10.0.0.0/08", False, False),
        ("010.0.0.0/8", False, False),
        ("2001:DB8::/64", True, False),
        ("::ffff:10.0.0.0/104", False, False),
        ("10.0.0.0/33", False, False),
        ("10.0.0.0", False, False),
        ("10.0.0.0/-1", False, False),
    ],
)
def test_cidr_forms(text: str, legacy: bool, canonical: bool) -> None:
    assert (ip.validate_cidr(text, "f") == []) is legacy
    assert (ip.validate_canonical_cidr(text, "f") == []) is canonical


@pytest.mark.parametrize(
    "text", ["0.0.0.0", "127.0.0.9", "169.254.1.1", "224.0.0.5", "::1", "fe80::1", "ff02::1"]
)
def test_unroutable_endpoint_address_is_rejected(text: str) -> None:
    assert ip.validate_endpoint_ip(text, "f") != []


@given(st.ip_addresses())
def test_printed_address_is_canonical(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
    assert (ip.validate_canonical_ip(str(address), "f") == []) is not mapped
    assert ip.ip_warnings(str(address), "f") == [] or mapped


@given(st.text(max_size=20))
def test_arbitrary_text_never_raises(text: str) -> None:
    ip.validate_cidr(text, "f")
    ip.cidr_warnings(text, "f")
    ip.ip_warnings(text, "f")
