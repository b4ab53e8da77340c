"""Declarations of CEL functions for the checker: names, overloads, types. A leading dot marks a method.

The implementations are in `functions` and `libraries`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from kubist.model.cel.types import SIMPLE, Type, list_of, map_of, optional_of, type_of


class Overload(NamedTuple):
    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool


_TABLE = """
_?_:_ conditional bool,A,A A
_&&_ logical_and bool,bool bool
_||_ logical_or bool,bool bool
!_ logical_not bool bool
@not_strictly_false not_strictly_false bool bool
_==_ equals A,A bool
_!=_ not_equals A,A bool
-_ negate_int64 int int
-_ negate_double double double
_+_ add_int64 int,int int
_+_ add_uint64 uint,uint uint
_+_ add_double double,double double
_+_ add_string string,string string
_+_ add_bytes bytes,bytes bytes
_+_ add_list list<A>,list<A> list<A>
_+_ add_timestamp_duration timestamp,duration timestamp
_+_ add_duration_timestamp duration,timestamp timestamp
_+_ add_duration_duration duration,duration duration
_-_ subtract_int64 int,int int
_-_ subtract_uint64 uint,uint uint
_-_ subtract_double double,double double
_-_ subtract_timestamp_timestamp timestamp,timestamp duration
_-_ subtract_timestamp_duration timestamp,duration timestamp
_-_ subtract_duration_duration duration,duration duration
_*_ multiply_int64 int,int int
_*_ multiply_uint64 uint,uint uint
_*_ multiply_double double,double double
_/_ divide_int64 int,int int
_/_ divide_uint64 uint,uint uint
_/_ divide_double double,double double
_%_ modulo_int64 int,int int
_%_ modulo_uint64 uint,uint uint
_[_] index_list list<A>,int A
_[_] index_map map<A,B>,A B
_[_] optional_list_index_value optional<list<A>>,int optional<A>
_[_] optional_map_index_value optional<map<A,B>>,A optional<B>
_[?_] list_optindex_optional_int list<A>,int optional<A>
_[?_] map_optindex_optional_value map<A,B>,A optional<B>
_[?_] optional_list_optindex_optional_int optional<list<A>>,int optional<A>
_[?_] optional_map_optindex_optional_value optional<map<A,B>>,A optional<B>
@in in_list A,list<A> bool
@in in_map A,map<A,B> bool
size size_string string int
size size_bytes bytes int
size size_list list<A> int
size size_map map<A,B> int
.size string_size string int
.size bytes_size bytes int
.size list_size list<A> int
.size map_size map<A,B> int
type type A type<A>
dyn to_dyn A dyn
int int64_to_int64 int int
int uint64_to_int64 uint int
int double_to_int64 double int
int string_to_int64 string int
int timestamp_to_int64 timestamp int
int duration_to_int64 duration int
uint uint64_to_uint64 uint uint
uint int64_to_uint64 int uint
uint double_to_uint64 double uint
uint string_to_uint64 string uint
double double_to_double double double
double int64_to_double int double
double uint64_to_double uint double
double string_to_double string double
bool bool_to_bool bool bool
bool string_to_bool string bool
string string_to_string string string
string bool_to_string bool string
string int64_to_string int string
string uint64_to_string uint string
string double_to_string double string
string bytes_to_string bytes string
string timestamp_to_string timestamp string
string duration_to_string duration string
string ip_to_string ip string
string cidr_to_string cidr string
bytes bytes_to_bytes bytes bytes
bytes string_to_bytes string bytes
timestamp timestamp_to_timestamp timestamp timestamp
timestamp int64_to_timestamp int timestamp
timestamp string_to_timestamp string timestamp
duration duration_to_duration duration duration
duration int64_to_duration int duration
duration string_to_duration string duration
matches matches string,string bool
.matches matches_string string,string bool
.contains contains_string string,string bool
.startsWith starts_with_string string,string bool
.endsWith ends_with_string string,string bool
.getFullYear timestamp_to_year timestamp int
.getFullYear timestamp_to_year_with_tz timestamp,string int
.getMonth timestamp_to_month timestamp int
.getMonth timestamp_to_month_with_tz timestamp,string int
.getDayOfYear timestamp_to_day_of_year timestamp int
.getDayOfYear timestamp_to_day_of_year_with_tz timestamp,string int
.getDayOfMonth timestamp_to_day_of_month timestamp int
.getDayOfMonth timestamp_to_day_of_month_with_tz timestamp,string int
.getDate timestamp_to_day_of_month_1_based timestamp int
.getDate timestamp_to_day_of_month_1_based_with_tz timestamp,string int
.getDayOfWeek timestamp_to_day_of_week timestamp int
.getDayOfWeek timestamp_to_day_of_week_with_tz timestamp,string int
.getHours timestamp_to_hours timestamp int
.getHours timestamp_to_hours_with_tz timestamp,string int
.getHours duration_to_hours duration int
.getMinutes timestamp_to_minutes timestamp int
.getMinutes timestamp_to_minutes_with_tz timestamp,string int
.getMinutes duration_to_minutes duration int
.getSeconds timestamp_to_seconds timestamp int
.getSeconds timestamp_to_seconds_tz timestamp,string int
.getSeconds duration_to_seconds duration int
.getMilliseconds timestamp_to_milliseconds timestamp int
.getMilliseconds timestamp_to_milliseconds_with_tz timestamp,string int
.getMilliseconds duration_to_milliseconds duration int
.charAt string_char_at_int string,int string
.indexOf string_index_of_string string,string int
.indexOf string_index_of_string_int string,string,int int
.lastIndexOf string_last_index_of_string string,string int
.lastIndexOf string_last_index_of_string_int string,string,int int
.lowerAscii string_lower_ascii string string
.upperAscii string_upper_ascii string string
.replace string_replace_string_string string,string,string string
.replace string_replace_string_string_int string,string,string,int string
.split string_split_string string,string list<string>
.split string_split_string_int string,string,int list<string>
.substring string_substring_int string,int string
.substring string_substring_int_int string,int,int string
.trim string_trim string string
.join list_join list<string> string
.join list_join_string list<string>,string string
.format string_format string,list<dyn> string
strings.quote strings_quote string string
.find string_find_string string,string string
.findAll string_find_all_string string,string list<string>
.findAll string_find_all_string_int string,string,int list<string>
.indexOf list_a_index_of_int list<A>,A int
.lastIndexOf list_a_last_index_of_int list<A>,A int
.slice list_slice list<A>,int,int list<A>
.flatten list_flatten list<list<A>> list<A>
.flatten list_flatten_int list<dyn>,int list<dyn>
.reverse list_reverse list<A> list<A>
.distinct list_distinct list<A> list<A>
lists.range lists_range int list<int>
sets.contains list_sets_contains_list list<A>,list<A> bool
sets.equivalent list_sets_equivalent_list list<A>,list<A> bool
sets.intersects list_sets_intersects_list list<A>,list<A> bool
cel.@mapInsert @mapInsert_map_key_value map<A,B>,A,B map<A,B>
cel.@mapInsert @mapInsert_map_map map<A,B>,map<A,B> map<A,B>
optional.of optional_of A optional<A>
optional.ofNonZeroValue optional_ofNonZeroValue A optional<A>
optional.none optional_none - optional<A>
.value optional_value optional<A> A
.hasValue optional_hasValue optional<A> bool
.or optional_or_optional optional<A>,optional<A> optional<A>
.orValue optional_orValue_value optional<A>,A A
optional.unwrap optional_unwrap list<optional<A>> list<A>
.unwrapOpt optional_unwrapOpt list<optional<A>> list<A>
url string_to_url string url
isURL is_url_string string bool
.getScheme url_get_scheme url string
.getHost url_get_host url string
.getHostname url_get_hostname url string
.getPort url_get_port url string
.getEscapedPath url_get_escaped_path url string
.getQuery url_get_query url map<string,list<string>>
quantity string_to_quantity string quantity
isQuantity is_quantity_string string bool
sign quantity_sign quantity int
.isGreaterThan quantity_is_greater_than quantity,quantity bool
.isLessThan quantity_is_less_than quantity,quantity bool
.compareTo quantity_compare_to quantity,quantity int
.asApproximateFloat quantity_get_float quantity double
.asInteger quantity_get_int quantity int
.isInteger quantity_is_integer quantity bool
.add quantity_add quantity,quantity quantity
.add quantity_add_int quantity,int quantity
.sub quantity_sub quantity,quantity quantity
.sub quantity_sub_int quantity,int quantity
ip string_to_ip string ip
isIP is_ip string bool
ip.isCanonical ip_is_canonical string bool
.family ip_family ip int
.isUnspecified ip_is_unspecified ip bool
.isLoopback ip_is_loopback ip bool
.isLinkLocalMulticast ip_is_link_local_multicast ip bool
.isLinkLocalUnicast ip_is_link_local_unicast ip bool
.isGlobalUnicast ip_is_global_unicast ip bool
cidr string_to_cidr string cidr
isCIDR is_cidr string bool
.containsIP cidr_contains_ip_string cidr,string bool
.containsIP cidr_contains_ip_ip cidr,ip bool
.containsCIDR cidr_contains_cidr_string cidr,string bool
.containsCIDR cidr_contains_cidr cidr,cidr bool
.ip cidr_ip cidr ip
.prefixLength cidr_prefix_length cidr int
.masked cidr_masked cidr cidr
semver string_to_semver string semver
semver string_bool_to_semver string,bool semver
isSemver is_semver_string string bool
isSemver is_semver_string_bool string,bool bool
.isGreaterThan semver_is_greater_than semver,semver bool
.isLessThan semver_is_less_than semver,semver bool
.compareTo semver_compare_to semver,semver int
.major semver_major semver int
.minor semver_minor semver int
.patch semver_patch semver int
.validate format-validate format,string optional<list<string>>
format.named format-named string optional<format>
"""

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMERIC = ("int", "uint", "double")
FORMATS = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)


def parse_type(text: str) -> Type:
    """Parses a type of the table."""
    if text in SIMPLE:
        return SIMPLE[text]
    if text in ("A", "B"):
        return Type("param", text)
    outer, _, inner = text.partition("<")
    parts = _split(inner[:-1])
    made = [parse_type(part) for part in parts]
    if outer == "map":
        return map_of(made[0], made[1])
    return {"list": list_of, "optional": optional_of, "type": type_of}[outer](made[0])


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]] if text and text != "-" else []


@functools.cache
def functions() -> dict[str, tuple[Overload, ...]]:
    """All functions and methods by name."""
    table: dict[str, list[Overload]] = {}

    def declare(name: str, id_: str, args: str, result: str) -> None:
        member = name.startswith(".")
        types = tuple(parse_type(part) for part in _split(args))
        table.setdefault(name.removeprefix("."), []).append(Overload(id_, types, parse_type(result), member))

    for line in _TABLE.strip().splitlines():
        declare(*line.split(" "))
    for operator, word in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals")):
        for kind in _ORDERED:
            suffix = {"int": "int64", "uint": "uint64"}.get(kind, kind)
            declare(f"_{operator}_", f"{word}_{suffix}", f"{kind},{kind}", "bool")
        for one in _NUMERIC:
            for other in _NUMERIC:
                if one != other:
                    declare(f"_{operator}_", f"{word}_{one}_{other}", f"{one},{other}", "bool")
    for kind in _COMPARABLE:
        declare(".isSorted", f"list_{kind}_is_sorted_bool", f"list<{kind}>", "bool")
        declare(".max", f"list_{kind}_max_{kind}", f"list<{kind}>", kind)
        declare(".min", f"list_{kind}_min_{kind}", f"list<{kind}>", kind)
        declare(".sort", f"list_{kind}_sort", f"list<{kind}>", f"list<{kind}>")
        declare(
            ".@sortByAssociatedKeys",
            f"list_{kind}_sortByAssociatedKeys",
            f"list<A>,list<{kind}>",
            "list<A>",
        )
    for kind in ("int", "uint", "double", "duration"):
        declare(".sum", f"list_{kind}_sum_{kind}", f"list<{kind}>", kind)
    for name in FORMATS:
        declare(f"format.{name}", f"format.{name}", "-", "format")
    return {name: tuple(overloads) for name, overloads in table.items()}
