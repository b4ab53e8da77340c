"""Commands that are simulated in exec."""

from __future__ import annotations

import asyncio
import io
import tarfile

import pytest

from kubist.cluster.simulation.shell import file_store
from kubist.cluster.simulation.shell.container import Clock, Container
from kubist.cluster.simulation.shell.errors import NoSpace
from kubist.cluster.simulation.shell.file_store import File, FileStore, absolute
from kubist.cluster.simulation.shell.shell import Shell
from kubist.model.meta.object import Object

POD: Object = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
ROOT: Object = {"uid": 0, "gid": 0, "supplementalGroups": [0]}


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

    def shell(self, streams: Captured) -> Shell:
        """Shell whose commands do not wait."""
        clock = Clock(lambda: 1_700_000_000.0, waits=False)
        files = self.store.of(POD, "main")
        container = Container("default/web", files, self.known, streams, clock, user=ROOT)
        return Shell(container, {"HOSTNAME": "web", "HOME": "/root", "A": "b c"})

    def run(self, *command: str, stdin: bytes = b"") -> tuple[int, str, str]:
        streams = Captured(stdin)
        code = asyncio.run(self.shell(streams).run(list(command)))
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
        ("X=1; Y=$X echo; echo $X$Y", 0, "\n1\n"),
        ("hostname; pwd; whoami", 0, "web\n/\nroot\n"),
        ("sleep 3600 && echo woke", 0, "woke\n"),
        ("date +%s", 0, "1700000000\n"),
        ("printenv A; printenv MISSING", 1, "b c\n"),
        ("/bin/busybox echo hi", 0, "hi\n"),
        ("bash -c 'exit 4'; echo $?", 0, "4\n"),
        ("test -d /etc && test -f /etc/hostname && [ a = a ] && [ ! -e /x ] && echo ok", 0, "ok\n"),
        ("cd /etc && cat config/a && ls config", 0, "1a\n"),
        ("", 0, ""),
        ("command -v bash >/dev/null && exec bash -c 'echo bash' || exec sh", 0, "bash\n"),
        ("command -v nginx cd sh; echo $?; which cd sleep; echo $?", 0, "cd\n/bin/sh\n1\n/bin/sleep\n1\n"),
        ("clear; (bash -c 'exit 3' || ash -c 'echo ash' || sh)", 0, "\x1b[H\x1b[2Jash\n"),
        ("TERM=xterm exec sh -c 'echo $TERM'; echo never", 0, "xterm\n"),
        (
            "TERM=xterm; export TERM; [ -x /bin/bash ] && ([ -x /usr/bin/script ] && no || exec printenv TERM)",
            0,
            "xterm\n",
        ),
        (
            "test -x /bin/sh && [ -x /usr/bin/tar ] && [ ! -x /bin/nginx ] && [ ! -x /etc/hostname ]; echo $?",
            0,
            "0\n",
        ),
        (
            "uname; uname -m; uname -sn; id; id -u; id -un",
            0,
            "Linux\nx86_64\nLinux web\nuid=0(root) gid=0(root) groups=0(root)\n0\nroot\n",
        ),
        ("echo a | cat", 0, "a\n"),
        ("echo one | cat | cat > /f; cat < /f; exit 3 | true", 0, "one\n"),
        ("X=1; echo | X=2; (X=3; cd /etc; exit 4); echo $? $X; pwd", 0, "4 1\n/\n"),
        ("echo $(echo a; echo b) \"$(echo 'c  d')\" \"$(echo ')')\"", 0, "a b c  d )\n"),
        ("if false; then echo a; elif [ 3 -gt 2 ]; then echo b; else echo c; fi > /f; cat /f", 0, "b\n"),
        ("for x in $A 'd e' f; do echo \"<$x>\"; done", 0, "<b>\n<c>\n<d e>\n<f>\n"),
        ("for x in 1 2 3 4; do [ $x = 2 ] && continue; [ $x = 4 ] && break; echo $x; done", 0, "1\n3\n"),
        ("for x in 1 2; do while true; do break 2; done; done; echo $x", 0, "1\n"),
        ("i=0; until [ $i -ge 3 ]; do i=$((i + 1)); done; echo $i", 0, "3\n"),
        ("{ echo out; echo err >&2; } 2>&1 | cat", 0, "out\nerr\n"),
        ("{ echo out; echo err >&2; } > /f 2>&1; cat /f; echo no &> /dev/null", 0, "out\nerr\n"),
        ("exec > /f; echo kept; exec > /dev/null; cat /f", 0, ""),
        ("sh -c 'echo $0 $1 $#; for x; do echo $x; done' name 'a b' c", 0, "name a b 2\na b\nc\n"),
        ("sh -c 'sh -c \"echo \\$#\" sh \"$@\"' sh 'a b' c", 0, "2\n"),
        ("set -e; false || true; if false; then :; fi; X=$(false); echo never", 1, ""),
        ("set -o pipefail; false | true; echo $?; ! true; echo $?", 0, "1\n1\n"),
        ("timeout 5 sh -c 'while true; do sleep 1; done'; echo $?", 0, "124\n"),
        ('env B=1 printenv B; echo "<$B>"; unset A; echo "<$A>"', 0, "1\n<>\n<>\n"),
        ("echo -e 'a\\tb'; printf '%s-%s\\n' 1 2", 0, "a\tb\n1-2\n"),
        ("X= ; [ -z $X ] && echo $((7 % 4)) $(expr 2 - 2)", 0, "3 0\n"),
        ("echo a 2> /dev/null > /dev/stderr; echo b > /dev/stdout", 0, "b\n"),
    ],
)
def test_script(box: Box, script: str, code: int, out: str) -> None:
    assert box.sh(script) == (code, out, "")


@pytest.mark.parametrize(
    "script",
    [
        "python3 -c 1",
        "echo a &",
        "echo `date`",
        "echo 'open",
        "echo ${A:-x}",
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


@pytest.mark.parametrize(
    ("script", "code", "err"),
    [
        ("cat < /missing", 1, "sh: can't open /missing: No such file or directory"),
        ("cd /missing", 1, "cd: can't cd to /missing: No such file or directory"),
        ("[ a = a", 2, "[: missing ]"),
        ("sh -c", 2, "sh: -c requires an argument"),
    ],
)
def test_failure_has_a_message(box: Box, script: str, code: int, err: str) -> None:
    assert box.sh(f"{script}; echo $? > /code") == (0, "", f"{err}\n")
    assert box.sh("cat /code")[1] == f"{code}\n"


def test_constructs_of_several_lines_are_read_whole(box: Box) -> None:
    script = (
        b"if true\nthen\n  for x in 1 2; do\n    echo $x\n  done\nfi\necho 'a\nb'\nsh -c 'if true'\nexit 3\n"
    )
    code, out, err = box.run("sh", stdin=script)
    assert (code, out) == (3, "1\n2\na\nb\n") and "cannot be simulated" in err
    assert box.run("sh", stdin=b"if true\n")[0] == 126
    assert box.run("sh", "-s", "a b", stdin=b"echo $1\n") == (0, "a b\n", "")


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
    assert asyncio.run(box.shell(streams).run(["tar", "cf", "-", "/data/dir"])) == 0
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
    monkeypatch.setattr(file_store, "CONTAINER_LIMIT", 5000)
    box.run("tar", "xf", "-", stdin=archive(a=b"A" * 3000))
    code, _, err = box.run("tar", "xf", "-", stdin=archive(b=b"B" * 3000))
    assert (code, err) == (1, "tar: No space left on device\n")
    assert box.sh("echo x > /f; cat /a")[0] == 0
    assert box.sh("rm /a && echo freed")[1] == "freed\n"
    assert box.run("tar", "xf", "-", stdin=archive(b=b"B" * 3000))[0] == 0


def test_files_of_all_containers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_store, "TOTAL_LIMIT", 5000)
    store = FileStore(lambda _: True)
    store.of(POD, "one").put("/a", File(b"A" * 3000))
    with pytest.raises(NoSpace):
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
