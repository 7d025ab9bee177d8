"""What the tests of the API know that its document does not say, and checks of our own.

Schemathesis imports this file. The environment has the role whose token is used, and the ids of jobs that exist.
"""

import json
import os
import zlib
from collections.abc import Mapping

import schemathesis

ROLE = os.environ["ATTACK_ROLE"]
JOBS = [int(n) for n in os.environ["ATTACK_JOBS"].split(",")]
SECRET = os.environ["ATTACK_SECRET"]  # is in every text of the jobs of a stranger
MIB = 1 << 20
with open("/proc/swaps") as _swaps:
    SWAP = int(len(_swaps.readlines()) > 1)  # without swap, flex is refused


def _number(value):
    """A number that depends on the value alone, so that the same seed gives the same requests."""
    return zlib.crc32(json.dumps(value, sort_keys=True, default=str).encode())


def _harmless(body):
    """Gives each program of a submission a name that does nothing; its arguments stay."""
    jobs = body.get("jobs", [body]) if isinstance(body, dict) else []
    for job in jobs if isinstance(jobs, list) else []:
        stages = job.get("stages") if isinstance(job, dict) else None
        for stage in stages if isinstance(stages, list) else []:
            args = stage.get("args") if isinstance(stage, dict) else None
            if isinstance(args, list) and args and all(isinstance(a, str) for a in args):
                stage["args"] = ["true", *args]
    command = body.get("command") if isinstance(body, dict) else None  # of the executors of a pool
    if isinstance(command, list) and all(isinstance(a, str) for a in command):
        body["command"] = ["true", *command]


def _valid(job):
    """A submission that is accepted, made of one that fits the schema. The schema does not say all that must hold."""
    h = _number(job)
    stages = [s if isinstance(s, dict) else {} for s in job.get("stages") or [{}]][:3]
    return {
        "name": f"n{h}",
        "dir": "/",
        "env": ["PATH=/usr/bin:/bin"],
        "stages": [
            {
                "name": f"s{i}",
                "tasks": 1 + (h >> i) % 3,
                "cpu_millicores": 1 + (h >> 4) % 500,
                "ideal_memory_bytes": MIB * (1 + (h >> 8) % 16),
                "parents": list(range(i))[: (h >> 12) % 3],
                "private_tmp": bool(h >> 16 & 1),
                "no_network": bool(h >> 17 & 1),
                "args": ["true", *(a for a in s.get("args") or [] if a.isprintable() and "{" not in a and "}" not in a)],
            }
            for i, s in enumerate(stages)
        ],
    }


def _valid_pool(name, h):
    """A pool that is accepted, without executors."""
    return {
        "name": name,
        "command": ["true"],
        "dir": "/",
        "max": 1 + h % 100,
        "ideal_memory_bytes": MIB * (1 + (h >> 8) % 64),
        "class": ("regular", "flex")[h >> 14 & SWAP],
        "idle_ns": 10**9 * (1 + (h >> 15) % 100),
        "policy": ("mira", "fair")[h >> 22 & 1],
    }


@schemathesis.serializer("application/vnd.bellows.message")
def message(ctx, value):
    """A line of JSON, without bytes after it."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/vnd.bellows.message")
def head(ctx, response):
    return json.loads(response.content.split(b"\n", 1)[0])


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Without a token there is no answer over the network. The document says so in words, since it is that of the socket, too."""
    raw_schema["security"] = [{"token": []}]


@schemathesis.hook
def filter_headers(context, headers):
    """A header with an empty value counts as absent."""
    return _no_empty(headers)


@schemathesis.hook
def filter_query(context, query):
    """A parameter with an empty value counts as absent."""
    return _no_empty(query)


def _no_empty(values):
    return not isinstance(values, Mapping) or all(v not in ("", {}, [], None) for v in values.values())


@schemathesis.hook
def before_call(context, case, kwargs):
    with open(f"{ROLE}.last", "w") as last:  # which the test prints if nothing comes after it
        last.write(f"{case.operation.method} {case.operation.path} {case.path_parameters} {case.query} {str(case.body)[:500]}")
    where = case.operation.path
    _harmless(case.body)
    if where == "/v1/prune" and isinstance(case.query, dict):
        case.query["dry_run"] = "true"  # jobs that another role uses stay
    for waits in ("ended", "follow", "all"):
        if "{" in where and isinstance(case.query, dict) and str(case.query.get(waits)).lower() in ("true", "t", "1"):
            del case.query[waits]  # would wait for the end of a job
    if case.meta is None or case.meta.generation.mode.value != "positive":
        return
    h = _number([case.path_parameters, case.query, case.body if isinstance(case.body, (dict, list)) else None])
    job = JOBS[h % len(JOBS)]
    if "job" in case.path_parameters and h >> 8 & 3:
        case.path_parameters["job"] = job
    if "task" in case.path_parameters and h >> 8 & 3:
        case.path_parameters["task"] = f"{job}.{h >> 10 & 1}.{h >> 11 & 1}"
    if "pool" in case.path_parameters and h >> 8 & 3:
        case.path_parameters["pool"] = f"p{h >> 10 & 1}"
        case.query = {}
        if "application" in case.path_parameters and h >> 11 & 15 == 0:  # few, because a request for results waits for them
            case.path_parameters["application"] = 1 + (h >> 15) % 3
        if "executor" in case.path_parameters:
            case.path_parameters["executor"] = h >> 15 & 3
        if case.operation.method == "put":
            case.body = _valid_pool(case.path_parameters["pool"], h)
            ACCEPTED.add(case.id)
        if where == "/v1/pools/{pool}/applications" and case.operation.method == "post":
            case.body = {"key": f"application number {h >> 12 & 7}", "weight": 1 + (h >> 15) % 9, "fresh": bool(h >> 19 & 1)}
    if where in ("/v1/jobs", "/v1/jobs/bulk", "/v1/plan") and case.operation.method == "post" and h >> 16 & 3:
        if isinstance(case.body, dict):
            bulk = where == "/v1/jobs/bulk"
            case.body = {"jobs": [_valid(j) for j in (case.body.get("jobs") or [{}])[:5]]} if bulk else _valid(case.body)
            case.headers.pop("Idempotency-Key", None)
            ACCEPTED.add(case.id)


ACCEPTED = set()  # the ids of cases that must be accepted


@schemathesis.check
def accepted(ctx, response, case):
    """A request that is valid is accepted; over the network, from a token with the scope for it."""
    if case.id in ACCEPTED:
        want = 403 if ROLE == "reader" and case.operation.path != "/v1/plan" else 201 if case.operation.path in ("/v1/jobs", "/v1/jobs/bulk") else 200
        assert response.status_code in (want, 401), f"a valid request was answered with {response.status_code}, not {want}"


@schemathesis.check
def problem(ctx, response, case):
    """Every refusal is a problem of RFC 9457 with the status of the answer, and no answer is a bug of the daemon."""
    if response.status_code < 400:
        return
    kind = response.headers.get("content-type", [""])[0]
    assert kind == "application/problem+json", f"status {response.status_code} has content type {kind}"
    if response.request.method != "HEAD":
        assert response.json()["status"] == response.status_code


@schemathesis.check
def no_word_of_a_stranger(ctx, response, case):
    """No text of the job of another user is in any answer, except to an operator."""
    assert ROLE == "admin" or SECRET not in response.text, "the answer has a text of another user's job"
