"""The page on log lines, drawn from the sources that write them."""

from deploy.watching.lines import ABOUT, ALWAYS, lines

MEANS = {
    "accounting was refused": "A record of a WorkloadMonitor can't be written as it is.",
    "admission.answered": "A rule answered a review of a VM or of its launcher, in so many seconds.",
    "admission.failed": "A bug: this start was refused, others go on. Report it with its `exception`.",
    "admission.turned-away": "No rule was asked, or none could answer in time; `why` is what the requester reads.",
    "an input was stored": "At `debug`: what ingest saw stands in EVENTS, at `events_seq`.",
    "budget.not-written": "A budget's counts are tried again.",
    "certificate.reloaded": "Another serving certificate is served from now on.",
    "certificate.unusable": "The files hold no pair that fits; the one before is served on.",
    "counts.not-written": "A class's counts are tried again.",
    "decided": "The leading binder decided, and the frame is durable: a line for each decision.",
    "decisions.gap": "A webhook lost its place in the log and goes on from the end; who waits asks again.",
    "decisions.lost": "A webhook follows the log anew.",
    "dryrun.unanswered": "No binder answered a dry run.",
    "epoch opened": "This process leads as binder from here on.",
    "fenced": "Another leader, or an operator's skip, came first: the leader begins an epoch anew, or stops.",
    "frame tried again": "NATS gave no clear answer; the same frame is sent again.",
    "mirror.not-written": "A tenant's mirrored budget is tried again.",
    "nats permission missing": "Its account may not do this; nothing goes on until it may.",
    "outcomes.not-stored": "NATS gave no clear answer; the same message is sent again.",
    "position.not-written": "A claim's place in line is tried again.",
    "positions.not-listed": "Places in line are shown a little later.",
    "quotas.unreadable": "A tenant's quotas can't be read: what was known last holds.",
    "request.retry": "NATS gave no clear answer; the same request is sent again.",
    "role starts again": "A role failed of something that passes.",
    "serving": "The process listens.",
    "stopped": "The process ended in order.",
    "webhooks.listening": "The webhooks' port is open.",
    "write.behind-the-log": "The object shows a newer decision: another projector writes from another log.",
    "write.refused": "The API server does not take a write as it is; `field` says where, never what.",
    "write.unclear": 'No clear answer, or a "not now": it is written again soon.',
}
"""What lines mean whose words alone don't say it."""

_HEAD = """<!-- Drawn from the sources by `make generate`; edits are lost. -->

# Log lines

Lines go to standard error: for people on a terminal, else as JSON, one object a line (`--log-format`, `--log-level`).
The libraries' own lines come in the same form. Every line has {always}, the logger being the module;
one of a failure that nobody expected has `exception` too. Only the sentence with which a process ends by itself is
plain text: it is for the person who reads `kubectl describe pod`.

A line about an input says which. `events_seq` is its place in EVENTS, `decisions_seq` the place in DECISIONS of the
frame that decided it, `namespace`, `vm` and `vmi_uid` whom it is about, `request` the review's uid in the API server's
audit log. So the story of a VM is what this prints, from all roles' pods, in the order of time:

```sh
kubectl logs -n gpubinder-system -l app.kubernetes.io/name=gpubinder --tail=-1 --prefix=false |
  jq -cR 'fromjson? | select(.namespace? == "tenant-a" and .vm == "train-1")' | jq -cs 'sort_by(.timestamp)[]'
```

`-R` and `fromjson?` pass over what is no JSON: the lines of nats-server, whose pods have the label too. And
`gpubinder replay --to-event N` shows what was known when input N was decided.

While one input is worked on, {about}
stand on each line that is written of it, also where the table does not name them.

No line holds a value of a Secret, of an annotation or of an environment variable: refusals are told by code, reason and
field path.

| line | level | written by | keys | what it means |
|---|---|---|---|---|
"""


def lines_page() -> str:
    """Return the page."""
    rows = "".join(
        f"| `{line.event}` | {line.level} | `{line.where}` | {_ticked(line.keys)} | {MEANS.get(line.event, '')} |\n"
        for line in lines()
    )
    return _HEAD.format(always=_ticked(ALWAYS), about=_ticked(ABOUT)) + rows


def _ticked(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
