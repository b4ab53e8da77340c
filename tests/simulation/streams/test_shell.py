"""Commands that are simulated in exec."""

from __future__ import annotations

import asyncio
import io
import tarfile

import pytest

from kubist.meta.object import Object
from kubist.simulation.kubeletapi import filestore
from kubist.simulation.kubeletapi.filestore import File, FileStore, absolute
from kubist.simulation.kubeletapi.process import Process

POD: Object = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}


class Captured:
    """Streams in memory."""

    def __init__(self, stdin: bytes = b"") -> None:
        self.stdin = [stdin] if stdin else []
        self.out = b""
        self.err = b""

    async def read(self) -> bytes:
        return self.stdin.pop(0) if self.stdin else b""

    async def write(self, data: bytes, *, error: bool = False) -> None:
        if error:
            self.err += data
        else:
            self.out += data


class Box:
    """Container whose files stay between commands."""

    def __init__(self) -> None:
        self.store = FileStore(lambda _: True)
        self.known = {"/etc/hostname": b"web\n", "/etc/config/a": b"1"}

    def run(self, *command: str, stdin: bytes = b"") -> tuple[int, str, str]:
        streams = Captured(stdin)
        env = {"HOSTNAME": "web", "HOME": "/root", "A": "b c"}
        files = self.store.of(POD, "main")
        process = Process(POD, env, self.known, files, streams, lambda: 1_700_000_000.0, instant=True)
        code = asyncio.run(process.run(list(command)))
        return code, streams.out.decode(errors="replace"), streams.err.decode()

    def sh(self, script: str, stdin: bytes = b"") -> tuple[int, str, str]:
        return self.run("sh", "-c", script, stdin=stdin)


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("true", 0, ""),
        ("false", 1, ""),
        ("exit 7", 7, ""),
        ("exit 256", 0, ""),
        ("false; exit", 1, ""),
        ("echo a  b", 0, "a b\n"),
        ("echo -n a", 0, "a"),
        ("echo 'a  b' \"c $A\" d\\ e", 0, "a  b c b c d e\n"),
        ("echo $A-${A} '$A' \"\\$A\" $ x$", 0, "b c-b c $A $A $ x$\n"),
        ("false; echo $?", 0, "1\n"),
        ("true && echo yes || echo no", 0, "yes\n"),
        ("false && echo yes || echo no", 0, "no\n"),
        ("false || true; echo end # comment", 0, "end\n"),
        ("echo one\necho two\n", 0, "one\ntwo\n"),
        ("X=1; Y=$X echo; echo $X$Y", 0, "\n11\n"),
        ("hostname; pwd; whoami", 0, "web\n/\nroot\n"),
        ("sleep 3600 && echo woke", 0, "woke\n"),
        ("date +%s", 0, "1700000000\n"),
        ("printenv A; printenv MISSING", 1, "b c\n"),
        ("/bin/busybox echo hi", 0, "hi\n"),
        ("bash -c 'exit 4'; echo $?", 0, "4\n"),
        ("test -d /etc && test -f /etc/hostname && [ a = a ] && [ ! -e /x ] && echo ok", 0, "ok\n"),
        ("cd /etc && cat config/a && ls config", 0, "1a\n"),
        ("", 0, ""),
    ],
)
def test_script(box: Box, script: str, code: int, out: str) -> None:
    assert box.sh(script) == (code, out, "")


@pytest.mark.parametrize(
    "script",
    [
        "python3 -c 1",
        "echo a | cat",
        "echo a &",
        "(echo a)",
        "echo `date`",
        "echo $(date)",
        "while true; do sleep 1; done",
        "if true; then echo a; fi",
        "cat < file",
        "echo 'open",
        "echo ${A:-x}",
        "echo -e a",
        "echo a > /dev/tty",
        "sh script.sh",
        "ls -l",
        "&& true",
    ],
)
def test_unsupported_script_ends_with_126(box: Box, script: str) -> None:
    code, out, err = box.sh(script)
    assert (code, out) == (126, "")
    assert err.startswith("kubist: pod default/web is simulated: no image runs, and ") and err.endswith("\n")


def test_sh_e_stops_at_the_first_failure(box: Box) -> None:
    assert box.run("sh", "-ec", "false; echo never") == (1, "", "")


def test_nested_exit_ends_only_its_shell(box: Box) -> None:
    assert box.sh("sh -c 'exit 4'; echo $?") == (0, "4\n", "")


def test_shell_reads_lines_of_stdin(box: Box) -> None:
    code, out, err = box.run("sh", stdin=b"echo one\nnope\necho two\nexit 5\necho never")
    assert (code, out) == (5, "one\ntwo\n") and '"nope" cannot be simulated' in err


def test_redirection_writes_files_that_stay(box: Box) -> None:
    assert (
        box.sh("echo one > /tmp/f; echo two >> /tmp/f; echo lost > /dev/null; nope 2>/dev/null || true")[0]
        == 126
    )
    assert box.sh("cat /tmp/f") == (0, "one\ntwo\n", "")
    assert box.sh("cat /missing 2>&1 > /dev/null; echo err >&2") == (
        0,
        "cat: can't open '/missing': No such file or directory\n",
        "err\n",
    )
    assert box.sh("rm /tmp/f && ls /tmp; cat /tmp/f")[0] == 1


def archive(**files: bytes) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as made:
        for name, content in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size, info.mode = len(content), 0o755
            made.addfile(info, io.BytesIO(content))
    return output.getvalue()


def test_tar_copies_in_both_directions(box: Box) -> None:
    sent = archive(dir__a=b"A" * 1000, dir__sub__b=b"B")
    assert box.run("tar", "-xmf", "-", "-C", "/data", stdin=sent) == (0, "", "")
    assert box.sh("test -d /data/dir/sub && cat /data/dir/sub/b") == (0, "B", "")
    streams = Captured()
    process = Process(POD, {}, {}, box.store.of(POD, "main"), streams, lambda: 0.0)
    assert asyncio.run(process.run(["tar", "cf", "-", "/data/dir"])) == 0
    with tarfile.open(fileobj=io.BytesIO(streams.out)) as received:
        members = {member.name: member.mode for member in received}
        assert members == {"data/dir/a": 0o755, "data/dir/sub/b": 0o755}
        content = received.extractfile("data/dir/a")
        assert content is not None and content.read() == b"A" * 1000


def test_tar_of_a_missing_path_fails(box: Box) -> None:
    code, _, err = box.run("tar", "cf", "-", "/missing")
    assert (code, err) == (1, "tar: /missing: No such file or directory\n")


@pytest.mark.parametrize("sent", [b"x" * 2000, b"", archive(a=b"A" * 5000)[:1000]])
def test_malformed_archive_is_an_error(box: Box, sent: bytes) -> None:
    assert box.run("tar", "xf", "-", stdin=sent) == (1, "", "tar: invalid tar archive\n")


def test_paths_of_an_archive_stay_below_the_root(box: Box) -> None:
    box.run("tar", "xf", "-", "-C", "/data", stdin=archive(**{"..__..__..__escaped": b"x"}))
    assert list(box.store.of(POD, "main").files) == ["/escaped"]


@pytest.mark.parametrize(
    "command", [["tar", "xzf", "-"], ["tar", "xf", "a.tar"], ["tar", "tf", "-"], ["tar"]]
)
def test_other_uses_of_tar_are_unsupported(box: Box, command: list[str]) -> None:
    assert box.run(*command)[0] == 126


def test_files_of_a_container_are_limited(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filestore, "CONTAINER_LIMIT", 5000)
    box.run("tar", "xf", "-", stdin=archive(a=b"A" * 3000))
    code, _, err = box.run("tar", "xf", "-", stdin=archive(b=b"B" * 3000))
    assert (code, err) == (1, "tar: No space left on device\n")
    assert box.sh("echo x > /f; cat /a")[0] == 0
    assert box.sh("rm /a && echo freed")[1] == "freed\n"
    assert box.run("tar", "xf", "-", stdin=archive(b=b"B" * 3000))[0] == 0


def test_files_of_all_containers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filestore, "TOTAL_LIMIT", 5000)
    store = FileStore(lambda _: True)
    store.of(POD, "one").put("/a", File(b"A" * 3000))
    with pytest.raises(filestore.NoSpace):
        store.of(POD, "two").put("/a", File(b"A" * 3000))


def test_files_of_deleted_pods_are_dropped() -> None:
    gone: set[str] = set()
    store = FileStore(lambda pod: pod["metadata"]["uid"] not in gone)
    store.of(POD, "main").put("/a", File(b"A" * 3000))
    assert store.size > 3000
    gone.add("u")
    assert store.of(POD, "main").files == {} and store.size == 0


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [
        ("a", "/", "/a"),
        ("../..", "/a", "/"),
        ("//x", "/", "/x"),
        ("./a/../b", "/d", "/d/b"),
        ("", "/d", "/d"),
    ],
)
def test_absolute_path(path: str, directory: str, expected: str) -> None:
    assert absolute(path, directory) == expected
