"""`gpubinder run`: serve a cluster, all roles in one process or one of them in each."""

import asyncio
import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from deploy.commands import options as o
from deploy.commands.endings import OK, carry_out
from deploy.log_lines import Form, Level, configure
from deploy.role_names import Role

if TYPE_CHECKING:
    from deploy.front_door import Door
    from deploy.serving import Serving

_WEBHOOKS = "Webhooks"
_PROCESS = "Process"
POD_LINGER_SECONDS = 5.0
POD_PATIENCE_SECONDS = 90.0

_log = structlog.get_logger(__name__)


Roles = Annotated[
    list[Role] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Only binder, ingest, projector, webhooks or accounting; may be repeated. Without it: all.",
        rich_help_panel=_PROCESS,
    ),
]
NoAccounting = Annotated[
    bool,
    typer.Option(
        "--no-accounting",
        envvar="GPUBINDER_NO_ACCOUNTING",
        help="Leave the records of WorkloadMonitors to cozystack's own controller.",
        rich_help_panel=_PROCESS,
    ),
]
StatusPort = Annotated[
    int,
    typer.Option(
        "--status-port",
        envvar="GPUBINDER_STATUS_PORT",
        metavar="PORT",
        help="/healthz, /readyz and /metrics; 0 for none.",
        rich_help_panel=_PROCESS,
    ),
]
BudgetMetrics = Annotated[
    bool,
    typer.Option(
        "--budget-metrics",
        envvar="GPUBINDER_BUDGET_METRICS",
        help="Also show each tenant's budget as a metric: as many series as there are budgets.",
        rich_help_panel=_PROCESS,
    ),
]
TellEnd = Annotated[
    float,
    typer.Option(
        "--tell-end",
        envvar="GPUBINDER_TELL_END",
        metavar="SECONDS",
        min=0,
        help="Keep the pages up this long after what must stop the process, so that a scrape sees why.",
        rich_help_panel=_PROCESS,
    ),
]
LogFormat = Annotated[Form, typer.Option("--log-format", help="How log lines look.", rich_help_panel=_PROCESS)]
LogLevel = Annotated[Level, typer.Option("--log-level", help="From which level on.", rich_help_panel=_PROCESS)]
WebhookPort = Annotated[
    int, typer.Option("--webhook-port", metavar="PORT", help="HTTPS for the API server.", rich_help_panel=_WEBHOOKS)
]
Register = Annotated[
    str,
    typer.Option(
        "--register-webhooks",
        metavar="URL",
        help="Have the API server call https://HOST:PORT, or NAMESPACE/SERVICE[:PORT], and install the policies.",
        rich_help_panel=_WEBHOOKS,
        show_default=False,
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        help="Serving certificate. Without it: one made here, held in a Secret and renewed.",
        rich_help_panel=_WEBHOOKS,
    ),
]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key.", rich_help_panel=_WEBHOOKS)]
TlsCa = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="FILE", help="Who signed it, for registering.", rich_help_panel=_WEBHOOKS),
]

ClientCa = Annotated[
    Path | None,
    typer.Option(
        "--webhook-client-ca",
        metavar="FILE",
        help="Who signs the API server's client certificate: reviews without one are turned away.",
        rich_help_panel=_WEBHOOKS,
    ),
]

Linger = Annotated[
    float | None,
    typer.Option(
        "--webhook-linger",
        envvar="GPUBINDER_WEBHOOK_LINGER",
        metavar="SECONDS",
        help="How long a stopping process takes reviews while it is no longer ready. Without it: 5 in a pod, else 0.",
        rich_help_panel=_WEBHOOKS,
        min=0,
        max=60,
    ),
]


def run(
    *,
    role: Roles = None,
    no_accounting: NoAccounting = False,
    status_port: StatusPort = 8080,
    budget_metrics: BudgetMetrics = False,
    tell_end: TellEnd = 0.0,
    log_format: LogFormat = Form.AUTO,
    log_level: LogLevel = Level.INFO,
    webhook_port: WebhookPort = 8443,
    register_webhooks: Register = "",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    webhook_client_ca: ClientCa = None,
    webhook_linger: Linger = None,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    nats_monitor: o.NatsMonitors = None,
    data: o.Data = o.DEFAULT_DATA,
    kubeconfig: o.Kubeconfig = "",
    context: o.Context = "",
    namespace: o.Namespace = o.DEFAULT_NAMESPACE,
) -> None:
    """Serve a cluster: [bold]watch it, decide, write, and answer its admission requests[/].

    Binder, ingest, projector and accounting each work under a lease: start as many processes as you like. Webhooks
    answer in every one. SIGTERM and Ctrl-C end it in order and give the leases back. A log that is broken, or is not
    the one of this cluster, ends it at once and says what to do. The log must have been begun: `gpubinder adopt`.

    [bold]Examples[/]
      gpubinder run --kubeconfig ~/.kube/config --register-webhooks https://192.0.2.7:8443
      gpubinder run --no-accounting
      gpubinder run --role webhooks --nats nats://nats:4222 --tls-cert tls.crt --tls-key tls.key
      gpubinder run --role binder --role projector --nats nats://nats:4222 --log-format json
    """
    from deploy.serving import Serving

    roles = _roles(role, no_accounting=no_accounting, register=bool(register_webhooks))
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data, tuple(nats_monitor or ()))
    configure(log_format, log_level)
    door = _door(data / "tls", tls_cert, tls_key, tls_ca, register_webhooks, webhook_client_ca)
    linger = _pod_linger() if webhook_linger is None else webhook_linger
    serving = Serving(
        roles, door, webhook_port, linger, status_port or None, budget_metrics=budget_metrics, tell_end_s=tell_end
    )
    carry_out(_run(reach, o.KubeOptions(kubeconfig, context, namespace), serving))


def _roles(given: list[Role] | None, *, no_accounting: bool, register: bool) -> tuple[Role, ...]:
    if given and Role.ACCOUNTING in given and no_accounting:
        raise typer.BadParameter("--role accounting and --no-accounting contradict each other")
    roles = tuple(dict.fromkeys(given or (one for one in Role if not (no_accounting and one is Role.ACCOUNTING))))
    if register and Role.WEBHOOKS not in roles:
        raise typer.BadParameter("--register-webhooks needs the role webhooks")
    return roles


def _pod_linger() -> float:
    """A Service goes on sending to a pod for a moment after it stopped being ready; nobody else does."""
    return POD_LINGER_SECONDS if os.environ.get("KUBERNETES_SERVICE_HOST") else 0.0


def _pod_patience() -> float:
    """Beside a pod there is the Job that begins the log, and a NATS that may still be starting."""
    return POD_PATIENCE_SECONDS if os.environ.get("KUBERNETES_SERVICE_HOST") else 0.0


def _door(
    directory: Path, cert: Path | None, key: Path | None, authority: Path | None, at: str, client_ca: Path | None
) -> "Door":
    from deploy.front_door import Door, address

    if (cert is None) != (key is None):
        raise typer.BadParameter("--tls-cert and --tls-key belong together")
    if at:
        try:
            address(at)
        except ValueError as error:
            raise typer.BadParameter(f"--register-webhooks {error}") from None
    return Door(directory, cert, key, authority, at, client_ca)


def _end_on_signals() -> None:
    """Let the first SIGTERM or Ctrl-C end the process in order, and the second one at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def end(which: signal.Signals) -> None:
        loop.remove_signal_handler(which)
        task.cancel()

    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, end, which)


def _keep_loaded() -> None:
    """Keep what is loaded by now out of later collections: a full one looks through all of it, and holds everybody up.

    Measured: 68,000 objects, 35 ms.
    """
    gc.collect()
    gc.freeze()


async def _run(reach: o.NatsOptions, kube: o.KubeOptions, serving: "Serving") -> int:
    from deploy.commands.opening import identity, open_begun, open_kube, program
    from deploy.roles import Place
    from deploy.serving import serve

    _end_on_signals()
    about = {"roles": [str(role) for role in serving.roles], "namespace": kube.namespace, "version": program()}
    try:
        async with open_kube(kube) as client, open_begun(reach, _pod_patience()) as opened:
            place = Place(client, opened.journal, opened.connection, kube.namespace, identity(), program())

            def started() -> None:
                _keep_loaded()
                _log.info("serving", identity=place.identity, **about)

            await serve(place, serving, started)
    except asyncio.CancelledError:
        _log.info("stopped")
    return OK
