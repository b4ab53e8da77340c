"""Validates and compiles the JWT authenticators of an AuthenticationConfiguration or of the `--oidc-*` flags."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubist.api.filters.authentication.claims import ClaimMapping, Rule, Source
from kubist.api.filters.authentication.oidc import ALGORITHMS, Issuer
from kubist.base.http.tls.contexts import client_context
from kubist.model import cel
from kubist.model.cel import BOOL, DYN, STRING, CompileError, Program, list_of, map_of, object_type
from kubist.model.meta.fields import FieldError, duplicate, invalid, required, summary
from kubist.model.meta.names import validate_domain_prefixed_path
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.config import Config


_TEXTS = list_of(STRING)
_USER = {"username": STRING, "uid": STRING, "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)}
CLAIMS = cel.Environment({"claims": map_of(STRING, DYN)})
USER = cel.Environment({"user": object_type("kubernetes.UserInfo", _USER)})
SHAPE = {
    "issuer": {
        "url": str,
        "discoveryURL": str,
        "certificateAuthority": str,
        "audiences": [str],
        "audienceMatchPolicy": str,
        "egressSelectorType": str,
    },
    "claimValidationRules": [{"claim": str, "requiredValue": str, "expression": str, "message": str}],
    "claimMappings": {
        "username": {"claim": str, "prefix": str, "expression": str},
        "groups": {"claim": str, "prefix": str, "expression": str},
        "uid": {"claim": str, "expression": str},
        "extra": [{"key": str, "valueExpression": str}],
    },
    "userValidationRules": [{"expression": str, "message": str}],
}
BOTH = "claim and expression can't both be set"
NEITHER = "claim or expression is required"
RESERVED = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
PREFIX = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
UNVERIFIED = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)


def issuer_of_flags(config: Config) -> Issuer:
    """Issuer of the `--oidc-*` flags. Raises ValueError if they break the rules for issuers."""
    for name in config.oidc_signing_algs:
        if name not in ALGORITHMS:
            raise ValueError(
                f'--oidc-signing-algs: oidc: unsupported signing alg: "{name}"; choose one of {", ".join(ALGORITHMS)}'
            )
    prefix = config.oidc_username_prefix
    if not prefix and config.oidc_username_claim != "email":
        prefix = f"{config.oidc_issuer_url}#"
    username = {"claim": config.oidc_username_claim, "prefix": "" if prefix == "-" else prefix}
    mappings: Object = {"username": username}
    if config.oidc_groups_claim:
        mappings["groups"] = {"claim": config.oidc_groups_claim, "prefix": config.oidc_groups_prefix}
    issuer: Object = {"url": config.oidc_issuer_url}
    if config.oidc_client_id:
        issuer["audiences"] = [config.oidc_client_id]
    if config.oidc_ca_file:
        issuer["certificateAuthority"] = Path(config.oidc_ca_file).read_text()
    rules = [{"claim": claim, "requiredValue": value} for claim, value in config.oidc_required_claim.items()]
    spec = {"issuer": issuer, "claimMappings": mappings, "claimValidationRules": rules}
    reader = JWTReader(spec, "", config.service_account_issuer, config.oidc_signing_algs)
    if reader.errors:
        raise ValueError(f"the --oidc-* flags are not valid: {summary(reader.errors)}")
    return reader.issuer()


class JWTReader:
    """Validates one JWT authenticator. `errors` have kube-apiserver's texts. Without errors, `issuer()` is the
    result."""

    def __init__(
        self, spec: Object, path: str, disallowed: Collection[str], algorithms: Collection[str] = ALGORITHMS
    ) -> None:
        self.errors: list[FieldError] = []
        self._spec = spec
        self._prefix = f"{path}." if path else ""
        self._algorithms = tuple(algorithms)
        self._issuer(spec.get("issuer") or {}, set(disallowed))
        self._claim_rules: list[Rule] = []
        self._required: dict[str, str] = {}
        self._validation_rules(spec.get("claimValidationRules") or [])
        self._mappings(spec.get("claimMappings") or {})
        self._user_rules = self._user_validation_rules(spec.get("userValidationRules") or [])

    def issuer(self) -> Issuer:
        issuer = self._spec["issuer"]
        mapping = ClaimMapping(
            self._username,
            self._groups,
            self._uid,
            self._extra,
            tuple(self._required.items()),
            self._claim_rules,
            self._user_rules,
        )
        return Issuer(
            issuer["url"],
            issuer["audiences"],
            mapping,
            issuer.get("certificateAuthority", ""),
            issuer.get("discoveryURL", ""),
            self._algorithms,
        )

    def _issuer(self, issuer: Object, disallowed: set[str]) -> None:
        path = f"{self._prefix}issuer"
        url, discovery = issuer.get("url", ""), issuer.get("discoveryURL", "")
        if url:
            self._url(url, f"{path}.url", disallowed)
        else:
            self.errors.append(required(f"{path}.url"))
        if discovery:
            where = f"{path}.discoveryURL"
            if url and url.rstrip("/") == discovery.rstrip("/"):
                self.errors.append(invalid(where, discovery, "discoveryURL must be different from URL"))
            self._url(discovery, where, set())
        self._audiences(issuer, path)
        if issuer.get("certificateAuthority"):
            try:
                client_context(issuer["certificateAuthority"].encode())
            except ValueError:
                why = "data does not contain any valid RSA or ECDSA certificates"
                self.errors.append(invalid(f"{path}.certificateAuthority", "<omitted>", why))
        if selector := issuer.get("egressSelectorType"):
            why = (
                "egress selector must be either controlplane or cluster"
                if selector not in ("controlplane", "cluster")
                else "egress selectors are not supported by this server; remove the field"
            )
            self.errors.append(invalid(f"{path}.egressSelectorType", selector, why))

    def _url(self, url: str, path: str, disallowed: set[str]) -> None:
        if url in disallowed:
            why = f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed))}]"
            self.errors.append(invalid(path, url, why))
        try:
            parts = urlsplit(url)
        except ValueError as error:
            self.errors.append(invalid(path, url, str(error)))
            return
        if parts.scheme != "https":
            self.errors.append(invalid(path, url, "URL scheme must be https"))
        if "@" in parts.netloc:
            self.errors.append(invalid(path, url, "URL must not contain a username or password"))
        if parts.query:
            self.errors.append(invalid(path, url, "URL must not contain a query"))
        if parts.fragment:
            self.errors.append(invalid(path, url, "URL must not contain a fragment"))

    def _audiences(self, issuer: Object, path: str) -> None:
        audiences, policy = issuer.get("audiences") or [], issuer.get("audienceMatchPolicy", "")
        where = f"{path}.audiences"
        if not audiences:
            self.errors.append(required(where, f"at least one {where} is required"))
            return
        for index, audience in enumerate(audiences):
            if not audience:
                self.errors.append(required(f"{where}[{index}]"))
            if audience in audiences[:index]:
                self.errors.append(duplicate(f"{where}[{index}]", audience))
        where = f"{path}.audienceMatchPolicy"
        if len(audiences) > 1 and policy != "MatchAny":
            why = "audienceMatchPolicy must be MatchAny for multiple audiences"
            self.errors.append(invalid(where, policy, why))
        elif len(audiences) == 1 and policy not in ("", "MatchAny"):
            why = "audienceMatchPolicy must be empty or MatchAny for single audience"
            self.errors.append(invalid(where, policy, why))

    def _validation_rules(self, rules: list[Object]) -> None:
        seen: set[str] = set()
        for index, rule in enumerate(rules):
            path = f"{self._prefix}claimValidationRules[{index}]"
            claim, expression = rule.get("claim", ""), rule.get("expression", "")
            if claim and expression:
                self.errors.append(invalid(path, claim, BOTH))
            elif claim:
                if rule.get("message"):
                    why = "may not be specified when claim is set"
                    self.errors.append(invalid(f"{path}.message", rule["message"], why))
                if claim in self._required:
                    self.errors.append(duplicate(f"{path}.claim", claim))
                self._required[claim] = rule.get("requiredValue", "")
            elif expression:
                if rule.get("requiredValue"):
                    why = "may not be specified when expression is set"
                    self.errors.append(invalid(f"{path}.requiredValue", rule["requiredValue"], why))
                if expression in seen:
                    self.errors.append(duplicate(f"{path}.expression", expression))
                    continue
                seen.add(expression)
                program = self._compile(expression, f"{path}.expression", CLAIMS, boolean=True)
                if program is not None:
                    self._claim_rules.append(Rule(program, rule.get("message", "")))
            else:
                self.errors.append(required(path, NEITHER))

    def _mappings(self, mappings: Object) -> None:
        path = f"{self._prefix}claimMappings"
        username = mappings.get("username") or {}
        if not username.get("claim") and not username.get("expression"):
            self.errors.append(required(f"{path}.username", NEITHER))
        self._username = self._source(username, f"{path}.username")
        self._groups = self._source(mappings.get("groups") or {}, f"{path}.groups")
        uid = mappings.get("uid") or {}
        self._uid = self._source({**uid, "prefix": ""} if uid.get("claim") else uid, f"{path}.uid")
        self._extra = self._extra_mappings(mappings.get("extra") or [], path)
        name = self._username.program
        if name is not None and name.selects("claims", "email"):
            programs = [name, *(rule.program for rule in self._claim_rules), *(p for _, p in self._extra)]
            if not any(program.selects("claims", "email_verified") for program in programs):
                self.errors.append(invalid(f"{path}.username.expression", name.expression, UNVERIFIED))

    def _source(self, spec: Object, path: str) -> Source:
        claim, expression = spec.get("claim", ""), spec.get("expression", "")
        if claim and expression:
            self.errors.append(invalid(path, "", BOTH))
        elif expression:
            if "prefix" in spec:
                why = "may not be specified when expression is set"
                self.errors.append(invalid(f"{path}.prefix", spec["prefix"], why))
            return Source(program=self._compile(expression, f"{path}.expression", CLAIMS))
        elif claim and "prefix" not in spec:
            self.errors.append(required(f"{path}.prefix", PREFIX))
        return Source(claim, spec.get("prefix", ""))

    def _extra_mappings(self, mappings: list[Object], above: str) -> list[tuple[str, Program]]:
        programs: dict[str, Program | None] = {}
        for index, mapping in enumerate(mappings):
            path = f"{above}.extra[{index}]"
            key, expression = mapping.get("key", ""), mapping.get("valueExpression", "")
            self.errors += validate_domain_prefixed_path(key, f"{path}.key")
            if key != key.lower():
                self.errors.append(invalid(f"{path}.key", key, "must be lowercase"))
            domain = f".{key.partition('/')[0]}" if "/" in key else ""
            if domain.endswith((".kubernetes.io", ".k8s.io")):
                self.errors.append(invalid(f"{path}.key", key, RESERVED))
            if key in programs:
                self.errors.append(duplicate(f"{path}.key", key))
                continue
            programs[key] = None
            if not expression:
                self.errors.append(required(f"{path}.valueExpression"))
                continue
            programs[key] = self._compile(expression, f"{path}.valueExpression", CLAIMS)
        return [(key, program) for key, program in programs.items() if program is not None]

    def _user_validation_rules(self, rules: list[Object]) -> list[Rule]:
        entries: dict[str, Rule | None] = {}
        for index, rule in enumerate(rules):
            path = f"{self._prefix}userValidationRules[{index}].expression"
            expression = rule.get("expression", "")
            if not expression:
                self.errors.append(required(path))
            elif expression in entries:
                self.errors.append(duplicate(path, expression))
            else:
                program = self._compile(expression, path, USER, boolean=True)
                entries[expression] = None if program is None else Rule(program, rule.get("message", ""))
        return [rule for rule in entries.values() if rule is not None]

    def _compile(
        self, expression: str, path: str, environment: cel.Environment, *, boolean: bool = False
    ) -> Program | None:
        try:
            program = cel.compile(expression, environment)
        except CompileError as error:
            why = f"compilation failed: {error.located(expression)}"
            self.errors.append(invalid(path, expression, why))
            return None
        if boolean and program.type != BOOL:
            self.errors.append(invalid(path, expression, "must evaluate to bool"))
            return None
        return program
