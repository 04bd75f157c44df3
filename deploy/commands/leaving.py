"""`gpubinder uninstall`: leave a cluster so that nothing in it waits for us and nothing of ours is left."""

from typing import Annotated

import typer
from rich.markup import escape

from deploy.commands import options as o
from deploy.commands.endings import carry_out
from deploy.commands.terminal import out, print_json, say


def uninstall(
    *,
    force: Annotated[bool, typer.Option("--force", help="Also where VMs with GPUs run or wait.")] = False,
    stop_deployments: Annotated[
        bool, typer.Option("--stop-deployments", help="First scale the chart's Deployments in --namespace to nothing.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look, and say what would be done.")] = False,
    json: o.Json = False,
    kubeconfig: o.Kubeconfig = "",
    context: o.Context = "",
    namespace: o.Namespace = o.DEFAULT_NAMESPACE,
) -> None:
    """Leave a cluster: finalizers and gates are let go, [bold]what is ours is taken away[/], what is yours stays.

    Refuses while VMs with GPUs run or wait, and while a role works: stop the VMs, then every `gpubinder run`.
    Webhooks, policies, finalizers, gates, licence copies, mirrored budgets, usage records, leases, key and anchor go.
    Claims that tenants ordered, classes, budgets and the kinds themselves stay, and so does the log in NATS: with
    it, or with what is left here, `gpubinder adopt` takes the cluster over again. The chart runs this by itself
    before it is removed. It may be run again from wherever it was cut off.

    [bold]Examples[/]
      gpubinder uninstall --dry-run
      gpubinder uninstall
    """
    kube = o.KubeOptions(kubeconfig, context, namespace)
    carry_out(_uninstall(kube, force=force, stop=stop_deployments, dry=dry_run, json=json))


async def _uninstall(kube: o.KubeOptions, *, force: bool, stop: bool, dry: bool, json: bool) -> None:
    from deploy.commands.opening import open_kube
    from deploy.leaving import Leaving, await_stopped, complaint, in_use, stop_deployments

    async with open_kube(kube) as client:
        used = await in_use(client)
        if used and not (force or dry):
            raise complaint(used)
        if not dry:
            if stop:
                await stop_deployments(client, kube.namespace)
            await await_stopped(client, kube.namespace)
        leaving = Leaving(client, kube.namespace, dry=dry)
        await leaving.everything()
    if json:
        print_json({"removed": leaving.told, "inUse": used, "dryRun": dry})
        return
    for line in leaving.told:
        say(out(), f"  {escape(line)}")
    if dry and used:
        say(out(), f"in the way: {escape(str(complaint(used)))}")
    done = "would be let go or taken away; nothing is changed" if dry else "let go or taken away; the log stays in NATS"
    say(out(), f"{len(leaving.told)} things {done}")
