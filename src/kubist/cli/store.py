"""`kubist backup`, `kubist restore` and `kubist doctor`: commands for the embedded store of a data directory."""

from __future__ import annotations

import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kubist.cli import flags, help
from kubist.cli.backup import back_up, restore, watched
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import DAMAGED, fail
from kubist.cli.progress import Progress
from kubist.storage.backup.database_reading import (
    DATABASE,
    NEWEST,
    damages,
    open_database,
    pass_interrupt_on,
    sealed_values,
    stored_metadata,
    summary,
)
from kubist.storage.encryption.unreadable import Undecrypted
from kubist.storage.store import KeyValue, OpenFailed

Values = dict[str, list[str]]
FILE = flags.Flag("file", "string", "", "Path of the backup.")
ENCRYPTION = flags.Flag(
    "encryption-provider-config",
    "string",
    "",
    "Encryption configuration file of the server, to check encrypted values too.",
)
FORCE = flags.Flag("force", "bool", "false", "Replace an existing store without asking. The old one is kept.")
FLAGS = {
    "backup": (DATA_DIR, FILE),
    "restore": (DATA_DIR, FILE, FORCE),
    "doctor": (DATA_DIR, ENCRYPTION),
}


TITLES = {
    "backup": """\
Copies the embedded store, keys and certificates of a data directory to one file. A server may run meanwhile.

Usage:
  kubist backup --file BACKUP [flags]""",
    "restore": """\
Replaces the store and the keys of a data directory by a backup. The server must be stopped. The old store is kept.

Usage:
  kubist restore --file BACKUP [flags]""",
    "doctor": """\
Checks the embedded store of a data directory: the file, and every object in it. Changes nothing.

Usage:
  kubist doctor [flags]""",
}


def run_backup(arguments: list[str]) -> int:
    return _run("backup", arguments, lambda values, directory: _print(back_up(directory, _file(values))))


def run_restore(arguments: list[str]) -> int:
    def act(values: Values, directory: Path) -> int:
        force = flags.is_on(values, "force")
        return _print(restore(_file(values), directory, _agree if force else _confirm))

    return _run("restore", arguments, act)


def run_doctor(arguments: list[str]) -> int:
    return _run(
        "doctor",
        arguments,
        lambda values, directory: _doctor(directory, values.get("encryption-provider-config", [""])[-1]),
    )


def _run(command: str, arguments: list[str], act: Callable[[Values, Path], int]) -> int:
    """Parses the flags, acts, and reports errors."""
    known = {flag.name: flag for flag in FLAGS[command]}
    values = flags.parse(arguments, known)
    if "help" in values:
        return help.show(TITLES[command], known.values())
    if "file" in known and not values.get("file", [""])[-1]:
        raise flags.FlagError(f"--file is missing: `kubist {command} --file BACKUP` names the backup")
    try:
        return act(values, data_dir(values))
    except OpenFailed as error:
        return fail(str(error), error.exit_code)
    except ValueError as error:
        return fail(str(error))


def _file(values: Values) -> Path:
    return Path(values["file"][-1])


def _print(report: str) -> int:
    print(report)
    return 0


def _agree(question: str) -> None:
    """`--force`: replaces without asking."""


def _confirm(question: str) -> None:
    """Asks on a terminal. Raises ValueError unless the user confirms."""
    if not sys.stdin.isatty():
        raise ValueError(f"{question} Nothing was changed: --force restores without asking")
    if input(f"{question} Continue? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was changed")


def _doctor(directory: Path, encryption: str) -> int:
    """Prints the problems of a store. The exit code tells whether there are any."""
    path = directory / DATABASE
    plain = _opener(encryption)
    problems, objects, revision, sealed = 0, 0, 0, 0
    with open_database(path) as connection, watched("Checking the store", connection) as progress:
        for problem in _problems(connection, plain, progress):
            progress.end()
            print(f"{path}: {problem}")
            problems += 1
        try:
            objects, revision = summary(connection)
            sealed = sealed_values(connection)
        except sqlite3.DatabaseError as error:  # already reported as a problem
            pass_interrupt_on(error)
    if sealed and not encryption:
        print(f"{path}: {sealed} values are encrypted: use --encryption-provider-config to check them")
    print(f"{path}: {objects} keys at revision {revision}, {problems} problems")
    if problems:
        print(
            f"To put a backup in its place: kubist restore --data-dir {shlex.quote(str(directory))} --file BACKUP"
        )
    return DAMAGED if problems else 0


def _opener(encryption: str) -> Callable[[str, bytes], bytes]:
    """Function that decrypts stored values. Values that it cannot decrypt are returned as `Undecrypted`."""
    if not encryption:
        return lambda _key, value: value
    if not Path(encryption).is_file():
        raise flags.FlagError(f"--encryption-provider-config: {encryption} does not exist or is no file")
    # Saves start-up time: only encrypted stores need the server.
    from kubist.api.resources.resource import Resources
    from kubist.server.server import encrypted_values

    values = encrypted_values(encryption, Resources())
    return lambda key, value: values.open(KeyValue(key, value, 0, 0)).value


def _problems(
    connection: sqlite3.Connection, plain: Callable[[str, bytes], bytes], progress: Progress
) -> Iterator[str]:
    damage = damages(connection)
    if damage:
        yield from (f"the file is damaged: {problem}" for problem in damage)
    try:
        yield from _bad_objects(connection, plain, progress)
    except sqlite3.DatabaseError as error:
        pass_interrupt_on(error)
        if not damage:
            yield f"the file is damaged: {error}"


def _bad_objects(
    connection: sqlite3.Connection, plain: Callable[[str, bytes], bytes], progress: Progress
) -> Iterator[str]:
    uids: dict[str, str] = {}
    for number, (key, stored) in enumerate(connection.execute(NEWEST)):
        progress.update(number, 0, "keys")
        value = stored if stored is None else plain(key, stored)
        if isinstance(value, Undecrypted):
            yield f"{key} cannot be decrypted: {value.reason}"
            continue
        try:
            metadata = stored_metadata(key, value)
        except ValueError as error:
            yield str(error)
            continue
        if metadata is None:
            continue
        if not key.endswith(f"/{metadata['name']}"):
            yield f"{key} holds an object named {metadata['name']!r}"
        uid = metadata.get("uid", "")
        if uid and uids.setdefault(uid, key) != key:
            yield f"{key} has the uid of {uids[uid]}"
