"""Comparison of two answers: decoding, normalisation of what differs by nature, and the differences."""
import copy, json, re, struct
import yaml

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
WORDS = ("message",)


def pointer(doc, ptr):
    for part in [p for p in ptr.split("/")[1:]]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(doc, list):
            doc = doc[int(part)] if part.lstrip("-").isdigit() and -len(doc) <= int(part) < len(doc) else None
        elif isinstance(doc, dict):
            doc = doc.get(part)
        else:
            return None
    return doc


def drop(doc, parts):
    if not parts:
        return
    head, rest = parts[0].replace("~1", "/").replace("~0", "~"), parts[1:]
    if isinstance(doc, dict):
        for k in (list(doc) if head == "*" else [head]):
            if k in doc:
                if rest:
                    drop(doc[k], rest)
                else:
                    del doc[k]
    elif isinstance(doc, list):
        for i in (range(len(doc)) if head == "*" else [int(head)] if head.isdigit() else []):
            if i < len(doc):
                if rest:
                    drop(doc[i], rest)
                else:
                    doc[i] = None


def proto_tree(b, depth=0):
    """A schema-less reading of protobuf bytes: enough to compare two encoders."""
    out, i = [], 0
    def varint(i):
        n = s = 0
        while True:
            if i >= len(b) or s > 63:
                raise ValueError
            n |= (b[i] & 127) << s
            s += 7
            i += 1
            if not b[i - 1] & 128:
                return n, i
    while i < len(b):
        key, i = varint(i)
        f, w = key >> 3, key & 7
        if f == 0:
            raise ValueError
        if w == 0:
            v, i = varint(i)
        elif w == 1:
            v, i = struct.unpack_from("<Q", b, i)[0], i + 8
        elif w == 5:
            v, i = struct.unpack_from("<I", b, i)[0], i + 4
        elif w == 2:
            n, i = varint(i)
            if i + n > len(b):
                raise ValueError
            raw, i = b[i:i + n], i + n
            try:
                text = raw.decode()
                text = text if text.isprintable() or text == "" else None
            except UnicodeDecodeError:
                text = None
            v = text
            if text is None or (depth < 12 and text and not text.isprintable()):
                try:
                    v = proto_tree(raw, depth + 1)
                except (ValueError, struct.error, IndexError):
                    v = text if text is not None else raw.hex()
        else:
            raise ValueError
        out.append([f, v])
    return out


def decode(headers, raw):
    ctype = headers.get("content-type", "")
    if headers.get("content-encoding") == "gzip":
        import gzip
        raw = gzip.decompress(raw)
    if raw[:4] == b"k8s\0":
        try:
            return {"k8s-protobuf": proto_tree(raw[4:])}
        except Exception:
            return {"undecodable": len(raw)}
    if "json" in ctype or raw[:1] in (b"{", b"["):
        try:
            return json.loads(raw)
        except ValueError:
            pass
    if "yaml" in ctype:
        try:
            return yaml.safe_load(raw)
        except Exception:
            pass
    return raw.decode("utf-8", "replace")


def normal(x, key="", gen=None):
    if isinstance(x, dict):
        gen = x.get("generateName") if isinstance(x.get("generateName"), str) else gen
        return {k: normal(v, k, gen) for k, v in x.items() if not (k == "description" and isinstance(v, str))}
    if isinstance(x, list):
        return [normal(v, key, gen) for v in x]
    if isinstance(x, str):
        if key == "resourceVersion" and x.isdigit() and x != "0":
            return "<rv>"
        if key == "continue" and x:
            return "<continue>"
        if gen and key == "name" and re.fullmatch(re.escape(gen) + "[a-z0-9]{5}", x):
            return gen + "<suffix>"
        return TIME.sub("<time>", UUID.sub("<uid>", x))
    return x


def strip_words(x):
    if isinstance(x, dict):
        return {k: ("<words>" if k in WORDS and isinstance(v, str) and v else strip_words(v)) for k, v in x.items()}
    if isinstance(x, list):
        return [strip_words(v) for v in x]
    return x


def comparable(ans, step):
    ans = copy.deepcopy(ans)
    body = normal(ans.get("body"))
    if step.get("loose"):
        return {"status": ans["status"]}
    if step.get("only"):
        body = {p: pointer(body, p) for p in step["only"]}
    for p in step.get("ignore") or []:
        drop(body, p.split("/")[1:])
    return {"status": ans["status"], "headers": normal(ans.get("headers") or {}), "body": body}


def differences(a, b, path=""):
    if type(a) is not type(b) and not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
        yield f"{path or '/'}: want {short(a)}, got {short(b)}"
    elif isinstance(a, dict):
        for k in list(a) + [k for k in b if k not in a]:
            p = f"{path}/{str(k).replace('~', '~0').replace('/', '~1')}"
            if k not in b:
                yield f"{p}: want {short(a[k])}, missing"
            elif k not in a:
                yield f"{p}: unexpected {short(b[k])}"
            else:
                yield from differences(a[k], b[k], p)
    elif isinstance(a, list):
        if len(a) != len(b):
            yield f"{path}: want {len(a)} items, got {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}/{i}")
    elif a != b:
        yield f"{path or '/'}: want {short(a)}, got {short(b)}"


def short(x):
    s = json.dumps(x, ensure_ascii=False)
    return s if len(s) < 160 else s[:157] + "..."
