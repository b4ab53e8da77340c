"""`kubist backup`, `kubist restore` and `kubist doctor`: the embedded store of a data directory, from outside.

A backup may be taken while the server runs; restoring and mending want it stopped.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson

from kubist.cli import flags
from kubist.cli.kubeconfig import default_data_dir
from kubist.cli.run import explain, fail
from kubist.storage.encryption.sealed import ENCRYPTED, Sealed
from kubist.storage.sqlite_file import APPLICATION_ID, DatabaseFile
from kubist.storage.store import KeyValue, OpenFailed

DATABASE = "kubist.db"
NEWEST = "SELECT key, value FROM changes JOIN (SELECT max(revision) AS r FROM changes GROUP BY key) ON revision = r"
SEALED = f"substr(value, 1, {len(ENCRYPTED)}) = x'{ENCRYPTED.hex()}'"
DATA_DIR = flags.Flag("data-dir", "string", "", "Data directory of the server.")
FILE = flags.Flag("file", "string", "", "The backup.")
ENCRYPTION = flags.Flag(
    "encryption-provider-config", "string", "", "The server's, to look into what is kept encrypted."
)
FLAGS = {"backup": (DATA_DIR, FILE), "restore": (DATA_DIR, FILE), "doctor": (DATA_DIR, ENCRYPTION)}


def main(command: str, arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS[command]}
    try:
        values = flags.parse(arguments, known)
    except flags.FlagError as error:
        return fail(str(error))
    if "help" in values:
        print(flags.usage(f"Usage:\n  kubist {command} [flags]", known.values()), end="")
        return 0
    directory = Path(values["data-dir"][-1]) if "data-dir" in values else default_data_dir()
    if command != "doctor" and "file" not in values:
        return fail("--file says which backup")
    try:
        if command == "backup":
            return _backup(directory, Path(values["file"][-1]))
        if command == "restore":
            return _restore(Path(values["file"][-1]), directory)
        return _doctor(directory, values.get("encryption-provider-config", [""])[-1])
    except OSError as error:
        return fail(explain(error))
    except (sqlite3.Error, OpenFailed, ValueError) as error:
        return fail(str(error))


def _opened(path: Path) -> sqlite3.Connection:
    """A database that only reads."""
    if not path.is_file():
        raise OpenFailed(f"{path} is not there")
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        connection.close()
        raise OpenFailed(f"{path} is not a store of Kubist")
    return connection


def _backup(directory: Path, target: Path) -> int:
    """Copy the store as it is at one moment, readers and writers undisturbed."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with closing(_opened(directory / DATABASE)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy, pages=1024)
            copy.execute("PRAGMA journal_mode = DELETE")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    print(f"backed up {directory / DATABASE} to {target}")
    return 0


def _restore(source: Path, directory: Path) -> int:
    """Put a backup in the place of the store, which no server may have open."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / DATABASE
    with closing(_opened(source)) as backup:
        owned = DatabaseFile(str(path))
        try:
            backup.backup(owned.writer)
        finally:
            owned.close()
    print(f"restored {path} from {source}")
    return 0


def _doctor(directory: Path, encryption: str) -> int:
    """Say what is wrong with a store: exit code 1 if anything is."""
    path = directory / DATABASE
    opened = _opener(encryption)
    with closing(_opened(path)) as connection:
        problems = list(_problems(connection, opened))
        (sealed,) = connection.execute(f"SELECT count(*) FROM ({NEWEST}) WHERE {SEALED}").fetchone()
        (objects,) = connection.execute(
            "SELECT count(*) FROM (SELECT max(revision) AS r FROM changes GROUP BY key) JOIN changes ON revision = r "
            "WHERE value IS NOT NULL"
        ).fetchone()
        (revision,) = connection.execute("SELECT ifnull(max(revision), 0) FROM changes").fetchone()
    for problem in problems:
        print(problem)
    if sealed and not encryption:
        print(f"{sealed} values are encrypted: --encryption-provider-config looks into them")
    print(f"{path}: {objects} keys at revision {revision}, {len(problems)} problems")
    return 1 if problems else 0


def _opener(encryption: str) -> Callable[[str, bytes], bytes]:
    """What makes plain values of stored ones; those it cannot open stay as they are."""
    if not encryption:
        return lambda key, value: value
    from kubist.resources import Resources
    from kubist.server import encrypted_values

    values = encrypted_values(encryption, Resources())
    return lambda key, value: values.open(KeyValue(key, value, 0, 0)).value


def _problems(connection: sqlite3.Connection, opened: Callable[[str, bytes], bytes]) -> Iterator[str]:
    for (found,) in connection.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"the file is damaged: {found}"
    uids: dict[str, str] = {}
    for key, stored in connection.execute(NEWEST):
        if stored is None or key.startswith("/registry/ranges/"):
            continue
        value = opened(key, stored)
        if isinstance(value, Sealed):
            yield f"{key} cannot be decrypted: {value.reason}"
            continue
        if value.startswith(ENCRYPTED):
            continue
        try:
            metadata = orjson.loads(value)["metadata"]
            name, uid = metadata["name"], metadata.get("uid", "")
        except (orjson.JSONDecodeError, KeyError, TypeError):
            yield f"{key} holds no object"
            continue
        if not key.endswith("/" + name):
            yield f"{key} holds an object named {name!r}"
        if uid and uids.setdefault(uid, key) != key:
            yield f"{key} has the uid of {uids[uid]}"
