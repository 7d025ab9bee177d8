"""Uses the client that was generated from the document of the API: a job, its result, everything that can be read, and refusals.

Usage: python client.py SOCKET, where the package bellows is the generated client.
"""

import sys

import httpx
from bellows import Client
from bellows.api.default import (
    application, applications, create_token, explain, health, job, jobs, logs, output, plan, pool, pools, profile, profiles, prune,
    put_pool, quotas, ready, revoke_token, status, store_profile, submit, submit_bulk, task, tasks, tokens, usage,
)
from bellows.models import Bulk, Elasticity, NewToken, NewTokenScope, PoolSpec, Problem, Profile, StageSpec, Submission, Token
from bellows.types import File

client = Client(base_url="http://bellows", timeout=httpx.Timeout(60), httpx_args={"transport": httpx.HTTPTransport(uds=sys.argv[1])})


def answer(operation, *args, **kwargs):
    """What an operation answers, if it succeeds."""
    answer = operation.sync(*args, client=client, **kwargs)
    assert not isinstance(answer, Problem), (operation, answer)
    # A part that is not as the document says stays as it came, and has no to_dict.
    for one in answer if isinstance(answer, list) else [answer]:
        if one is not None and not isinstance(one, File):
            one.to_dict()
    return answer


def submission(*args, tasks=1):
    stage = StageSpec(tasks=tasks, cpu_millicores=10, ideal_memory_bytes=4 << 20, args=list(args))
    return Submission(name="python", dir_="/", env=["PATH=/usr/bin:/bin"], stages=[stage])


def refused(status, code, operation, *args, **kwargs):
    """The problem of a request that fails."""
    r = operation.sync_detailed(*args, client=client, **kwargs)
    assert (r.status_code, type(r.parsed)) == (status, Problem), (operation, r)
    assert (r.parsed.status, r.parsed.code) == (status, code), r.parsed
    return r.parsed


# A job is submitted once, though its request is sent twice.
id = answer(submit, body=submission("echo", "hello from Python"), idempotency_key="python").id
assert answer(submit, body=submission("echo", "hello from Python"), idempotency_key="python").id == id
ended = answer(job, id, ended=True, usage=True)
assert (ended.status, ended.ended, ended.exit_code or 0) == ("succeeded", True, 0), ended
assert [(s.tasks, s.succeeded) for s in ended.stages] == [(1, 1)], ended
printed = answer(output, f"{id}.0.0")
assert printed.payload.read() == b"hello from Python\n", printed

problem = refused(400, "invalid", submit, body=submission("true", tasks=0))
assert (problem.field, problem.value) == ("stages[0].tasks", "0"), problem
refused(404, "not-found", job, 1000)
# Later daemons have more codes and fields, and scopes of tokens.
later = Problem.from_dict({**problem.to_dict(), "code": "weary", "more": 1})
assert (later.code, later["more"]) == ("weary", 1), later

ids = answer(submit_bulk, body=Bulk(dir_="/", env=["PATH=/usr/bin:/bin"], jobs=[submission("false"), submission("true")])).ids
assert [answer(job, i, ended=True).status for i in ids] == ["failed", "succeeded"]
assert [j.id for j in answer(jobs, all_=True, after=id)] == ids
running = answer(submit, body=submission("sleep", "1000")).id
assert [j.id for j in answer(jobs, name="python")] == [running]
assert answer(explain, running).to_dict() and answer(logs, id) and answer(usage, id, spans=10)
for one in answer(tasks, usage=True):
    assert answer(task, f"{one.task.job}.{one.task.stage}.{one.task.index}").task == one.task
assert answer(plan, body=submission("true")).payload.read()

learned = Profile(ideal_memory_bytes=4 << 20, min_memory_bytes=1 << 20, duration_ns=10**9, elasticity=Elasticity(kind="step", factor=2.0))
answer(store_profile, "python", body=learned)
assert answer(profile, "python").elasticity == learned.elasticity and [p.name for p in answer(profiles)] == ["python"]
assert [answer(application, a.name).name for a in answer(applications)]
answer(put_pool, "python", body=PoolSpec(name="python", command=["true"], dir_="/", max_=2, ideal_memory_bytes=4 << 20))
assert answer(pool, "python").to_dict() and "python" in [p.name for p in answer(pools)]
token = answer(create_token, body=NewToken(scope=NewTokenScope.READ, lifetime_ns=60 * 10**9))
assert answer(tokens)[-1].id == token.id and token.scope == "read"
Token.from_dict({**answer(tokens)[-1].to_dict(), "scope": "later"})
answer(revoke_token, token.id)
assert answer(health).to_dict() and answer(ready).ready and answer(status).to_dict()
assert answer(quotas) is not None and answer(prune, dry_run=True).to_dict()
print("the client in Python is usable")
