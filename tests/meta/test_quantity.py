"""Quantities: kept, rewritten and rejected texts, and arithmetic."""

import pytest

from kubist.model.meta.quantity import (
    FORMAT_WRONG,
    NUMERIC_WRONG,
    SUFFIX_WRONG,
    canonical_quantity,
    parse_quantity,
)


@pytest.mark.parametrize(
    "text", ["0", "1", "1e9", "1E3", "+3", "5.", "1073741824", "129e6", "500m", "1Gi", "-1"]
)
def test_canonical_looking_quantity_is_kept(text: str) -> None:
    assert canonical_quantity(text) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "500m"),
        (".5", "500m"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("0.1Gi", "107374182400m"),
        ("1000000k", "1G"),
        ("1.5Gi", "1536Mi"),
        ("1e20", "100e18"),
        ("0Mi", "0"),
        ("-0.5", "-500m"),
        ("0.0000000001", "1n"),
        ("20Ei", "9223372036854775807"),
        ("1.0", "1"),
        ("100000000000000000000", "100E"),
    ],
)
def test_other_quantity_is_rewritten_canonically(text: str, canonical: str) -> None:
    assert canonical_quantity(text) == canonical
    assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", FORMAT_WRONG),
        ("lots", FORMAT_WRONG),
        ("1x", FORMAT_WRONG),
        ("1 Gi", FORMAT_WRONG),
        ("1.2.3", FORMAT_WRONG),
        ("1ki", SUFFIX_WRONG),
        ("1K", SUFFIX_WRONG),
        ("1e", SUFFIX_WRONG),
        ("1en5", SUFFIX_WRONG),
        ("1e999999999", SUFFIX_WRONG),
        ("9" * 5000, NUMERIC_WRONG),
        ("9" * 1_500_000, NUMERIC_WRONG),
        ("0." + "0" * 1_500_000 + "1", NUMERIC_WRONG),
        ("1" + "k" * 1_500_000, SUFFIX_WRONG),
        ("1" + "x" * 1_500_000, FORMAT_WRONG),
    ],
    ids=lambda text: text[:20],
)
def test_invalid_quantity_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="quantit") as error:
        parse_quantity(text)
    assert str(error.value) == reason


def test_many_zeros_are_zero() -> None:
    assert canonical_quantity("0" * 1_500_000) == "0"


def test_quantities_compare_by_amount() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1073741824")
    assert parse_quantity("999m") < parse_quantity("1")
    assert not parse_quantity("0")


def test_sum_has_the_format_of_its_first_nonzero_part() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1024Mi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1") - parse_quantity("250m")) == "750m"
    assert str(-(parse_quantity("2") * 3)) == "-6"


def test_values_round_away_from_zero() -> None:
    assert parse_quantity("1500m").value() == 2
    assert parse_quantity("-1500m").value() == -2
    assert parse_quantity("1n").milli_value() == 1
    assert str(parse_quantity("1n").round_up(-3)) == "1m"


@pytest.mark.parametrize(
    ("text", "value", "milli_value"),
    [
        ("9E", 9 * 10**18, 0),
        ("100E", 0, 0),
        ("1e20", 0, 0),
        ("9223372036854775807", 2**63 - 1, -1000),
        ("9223372036854775808", -(2**63), 0),
        ("18446744073709551617", 1, 1000),
        ("100000000000000000000", 7766279631452241920, 200376420520689664),
        ("1Ei", 2**60, -(2**63)),
        ("20Ei", 2**63 - 1, -1000),
        ("-7Ei", 0, 0),
        ("123456789012345678", 123456789012345678, -5670419503621183312),
        ("12345678901234567M", 4807115922876968896, -7484280361224075776),
        ("-1.0000000000000000005", 0, -999),
    ],
)
def test_values_beyond_64_bits_depend_on_the_number_of_digits(
    text: str, value: int, milli_value: int
) -> None:
    amount = parse_quantity(text)
    assert (amount.value(), amount.milli_value()) == (value, milli_value)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("9E", "9E", 0),
        ("9E", "1", 9 * 10**18 + 1),
        ("9E", "1G", 9 * 10**18 + 10**9),
        ("10E", "5", 10**19 + 5 - 2**64),
        ("10E", "5k", 10**19 + 5000 - 2**64),
        ("0", "100E", 0),
        ("100E", "0", 0),
        ("100000000000000000000", "0", 7766279631452241920),
    ],
)
def test_sums_beyond_64_bits_wrap_if_their_digits_do_not_fit(one: str, other: str, value: int) -> None:
    assert (parse_quantity(one) + parse_quantity(other)).value() == value
    assert (parse_quantity(one) - -parse_quantity(other)).value() == value


def test_exponent_may_have_leading_zeros() -> None:
    assert canonical_quantity("1e0000000000000003") == "1e0000000000000003"
    assert parse_quantity("1e" + "0" * 5000) == parse_quantity("1")
