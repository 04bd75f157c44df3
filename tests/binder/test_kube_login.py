"""How the client finds its API server and stays signed in."""

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from binder.kube import ApiError
from binder.kube_client import KubeClient
from binder.kube_login import LoginError, find_kubeconfig
from schemas.kinds import CONFIGMAP
from tests.error_logs import ErrorLogs

FAR = "2126-01-01T00:00:00Z"
PAST = "2001-01-01T00:00:00Z"


class Guard:
    """A server that knows one token at a time."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.shown: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer 401 to every other token."""
        self.shown.append(request.headers.get("Authorization", ""))
        known = self.shown[-1] == f"Bearer {self.token}"
        return web.Response(body=b"{}") if known else web.Response(status=401, body=b'{"reason":"Unauthorized"}')


@asynccontextmanager
async def guarded(guard: Guard, kubeconfig: Path, user: dict[str, object]) -> AsyncIterator[KubeClient]:
    """A client that signs in as this user of a kubeconfig."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", guard.answer)
    async with TestServer(app) as server:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": str(server.make_url(""))}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        kubeconfig.write_text(yaml.safe_dump(document))
        client = await KubeClient.connect(kubeconfig=str(kubeconfig), context="x")
        try:
            yield client
        finally:
            await client.close()


def plugin(directory: Path, expiry: str) -> dict[str, object]:
    """A user whose token an exec plugin prints; `directory/token` is what it prints, `runs` how often it ran."""
    script = directory / "plugin.sh"
    status = f'"status":{{"token":"%s","expirationTimestamp":"{expiry}"}}' if expiry else '"status":{"token":"%s"}'
    body = f'{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",{status}}}'
    script.write_text(f"#!/bin/sh\necho run >> {directory}/runs\nprintf '{body}' \"$(cat {directory}/token)\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


async def test_a_rotated_token_file_is_read_again_when_refused(tmp_path: Path) -> None:
    """A 401 makes the client read its kubeconfig again, token file included, and ask once more."""
    (tmp_path / "token").write_text("old")
    guard = Guard("old")
    async with guarded(guard, tmp_path / "k", {"tokenFile": str(tmp_path / "token")}) as client:
        await client.get(CONFIGMAP, "default", "a")
        (tmp_path / "token").write_text("new")
        guard.token = "new"
        await client.get(CONFIGMAP, "default", "a")
    assert guard.shown == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_refused_login_is_refused_once(tmp_path: Path) -> None:
    """A token that stays wrong is an Unauthorized error, not a loop."""
    guard = Guard("other")
    async with guarded(guard, tmp_path / "k", {"token": "mine"}) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(CONFIGMAP, "default", "a")
    assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")
    assert guard.shown == ["Bearer mine", "Bearer mine"]


@pytest.mark.parametrize(("expiry", "runs"), [(FAR, 1), ("", 1)])
async def test_an_exec_plugin_is_asked_once(tmp_path: Path, expiry: str, runs: int) -> None:
    """The plugin's token serves until it expires, for good where it says no hour."""
    (tmp_path / "token").write_text("t")
    guard = Guard("t")
    async with guarded(guard, tmp_path / "k", plugin(tmp_path, expiry)) as client:
        for _ in range(3):
            await client.get(CONFIGMAP, "default", "a")
    assert (tmp_path / "runs").read_text().count("run") == runs


async def test_an_exec_plugin_is_asked_again_when_refused(tmp_path: Path) -> None:
    """A 401 makes the client run the plugin again, whatever expiry it gave."""
    (tmp_path / "token").write_text("old")
    guard = Guard("new")
    async with guarded(guard, tmp_path / "k", plugin(tmp_path, FAR)) as client:
        (tmp_path / "token").write_text("new")
        await client.get(CONFIGMAP, "default", "a")
    assert guard.shown == ["Bearer old", "Bearer new"]


async def test_an_expired_plugin_token_is_renewed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the plugin's hour has come its token is renewed before a request, not after a refusal."""
    monkeypatch.setattr("binder.kube_login.RENEW_SECONDS", 0.0)
    (tmp_path / "token").write_text("old")
    guard = Guard("new")
    async with guarded(guard, tmp_path / "k", plugin(tmp_path, PAST)) as client:
        (tmp_path / "token").write_text("new")
        await client.get(CONFIGMAP, "default", "a")
    assert guard.shown == ["Bearer new"]


async def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error says which file was looked for and what to do."""
    with pytest.raises(
        LoginError, match=f"{tmp_path}/nowhere: there is no such file; give a kubeconfig that kubectl accepts"
    ):
        await KubeClient.connect(kubeconfig=str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "text", ["clusters: [", "- a\n- b\n", "3", "\x00", "clusters: 3\ncontexts: 4\ncurrent-context: x\n"]
)
async def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    """Whatever stands in the file, the person at the terminal is told which file it is, in one line."""
    (tmp_path / "k").write_text(text)
    with pytest.raises(LoginError, match=r"^no API server from .*/k: .*kubectl accepts$"):
        await KubeClient.connect(kubeconfig=str(tmp_path / "k"))


async def test_a_kubeconfig_spoiled_while_running_is_an_error_of_the_request(tmp_path: Path) -> None:
    """A file that is being replaced ends no program: the request failed, and the next one signs in again."""
    guard = Guard("old")
    async with guarded(guard, tmp_path / "k", {"token": "old"}) as client:
        good = (tmp_path / "k").read_text()
        (tmp_path / "k").write_text("clusters: [")
        guard.token = "new"
        with pytest.raises(ApiError, match="no YAML") as refused:
            await client.get(CONFIGMAP, "default", "a")
        assert refused.value.code == 0
        (tmp_path / "k").write_text(good.replace("old", "new"))
        await client.get(CONFIGMAP, "default", "a")


async def test_a_plugin_that_fails_while_running_is_an_error_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_logs: ErrorLogs
) -> None:
    """An identity provider that is away ends no program: the request failed, and the next one asks it again."""
    error_logs.allow("exec: process returned 1")
    monkeypatch.setattr("binder.kube_login.RENEW_SECONDS", -1.0)
    (tmp_path / "token").write_text("t")
    async with guarded(Guard("t"), tmp_path / "k", plugin(tmp_path, PAST)) as client:
        script = (tmp_path / "plugin.sh").read_text()
        (tmp_path / "plugin.sh").write_text("#!/bin/sh\nexit 1\n")
        with pytest.raises(ApiError, match="exec") as refused:
            await client.get(CONFIGMAP, "default", "a")
        assert refused.value.code == 0
        (tmp_path / "plugin.sh").write_text(script)
        await client.get(CONFIGMAP, "default", "a")


async def test_a_broken_plugin_is_an_error_of_the_login(tmp_path: Path, error_logs: ErrorLogs) -> None:
    """A plugin that fails is a LoginError, not a stack of somebody else's."""
    error_logs.allow("exec: process returned 1")
    user = plugin(tmp_path, "")
    (tmp_path / "plugin.sh").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LoginError, match="exec"):
        async with guarded(Guard("t"), tmp_path / "k", user):
            pass


def test_where_a_configuration_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A given path wins, then $KUBECONFIG, then the pod's service account, then the user's own file."""
    monkeypatch.setenv("KUBECONFIG", "/etc/one")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert find_kubeconfig("/etc/given") == Path("/etc/given")
    assert find_kubeconfig("") == Path("/etc/one")
    monkeypatch.delenv("KUBECONFIG")
    assert find_kubeconfig("") is None
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert find_kubeconfig("") == Path("~/.kube/config").expanduser()


async def test_a_pod_without_a_service_account_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pod whose token isn't mounted the error says that the service account was tried."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(LoginError, match="the pod's service account"):
        await KubeClient.connect()


async def test_the_environments_proxy_is_taken_unless_the_server_is_exempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY and NO_PROXY mean what they mean to kubectl."""
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")

    async with guarded(Guard("t"), tmp_path / "config", {"token": "t"}) as client:
        assert client._login.proxy == "http://proxy.example.org:3128"  # noqa: SLF001 - there is no proxy to be asked
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with guarded(Guard("t"), tmp_path / "config", {"token": "t"}) as client:
        assert client._login.proxy is None  # noqa: SLF001 - the same
        assert await client.get(CONFIGMAP, "a", "b") == b"{}"
