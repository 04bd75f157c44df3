"""Who asks the API server, and where it is: kubeconfig, service account, exec plugins, renewed in time.

The only door to `kubernetes_asyncio`, and it takes no more than that library's reading of
configurations: its models and its watch cost a hundred times what decoding with msgspec does.
"""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

RENEW_SECONDS = 60.0
"""How often a kubeconfig is read again: token files and identity providers rotate what it names."""

_UNUSABLE = (config.ConfigException, OSError, AttributeError, LookupError, TypeError, ValueError, RuntimeError)
"""What the library raises at a file, a plugin's answer or an account that is not what it should be."""


class LoginError(Exception):
    """No usable configuration was found; the message says where it was looked for and what to do."""


class Login:
    """Address, TLS context and credential of one API server.

    `authorization()` is called per request and answers from memory unless something is due: a
    service account's token each minute, an exec plugin when its credential expires, a kubeconfig
    each `RENEW_SECONDS`. `rejected()` (after a 401) reads everything again.
    """

    def __init__(self, kubeconfig: Path | None, context: str = "") -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration = Configuration()
        self._loader: KubeConfigLoader | None = None
        self._renewing = asyncio.Lock()
        self._due = 0.0
        self._environments: str | None = None
        self.tls: ssl.SSLContext | None = None

    @classmethod
    async def load(cls, kubeconfig: str = "", context: str = "") -> Self:
        """Find a configuration: the path given, `$KUBECONFIG`, the pod's service account, `~/.kube/config`.

        Raises `LoginError`.
        """
        login = cls(find_kubeconfig(kubeconfig), context)
        await login.rejected()
        return login

    @property
    def host(self) -> str:
        """The server's root URL, without a slash at its end."""
        return str(self._configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """The name that the server's certificate must carry, where it isn't the host's."""
        return self._configuration.tls_server_name

    @property
    def proxy(self) -> str | None:
        """The proxy that the kubeconfig names, else the one that the environment has for this server."""
        return self._configuration.proxy or self._environments

    async def authorization(self) -> str:
        """Return the value of the `Authorization` header, '' where a client certificate says it all.

        Raises `LoginError` where what is due can't be renewed.
        """
        if self._loader is not None and asyncio.get_running_loop().time() >= self._due:
            async with self._renewing:
                await self._renew(self._loader)
        key = await self._configuration.get_api_key_with_prefix("BearerToken")
        return str(key or "")

    async def rejected(self) -> None:
        """Read the configuration anew, exec plugin and certificates included. Raises `LoginError`."""
        async with self._renewing:
            await self._read()

    async def _renew(self, loader: KubeConfigLoader) -> None:
        """Renew what is due; an exec plugin without expiry is asked again only after a 401, as kubectl does."""
        if asyncio.get_running_loop().time() < self._due:
            return  # another request renewed it meanwhile
        if not _is_exec(loader):
            await self._read()
            return
        if hasattr(loader, "exec_plugin_expiry"):
            # The library looks at the expiry first, so most calls cost nothing.
            try:
                await loader.load_from_exec_plugin()
            except _UNUSABLE as error:
                raise self._unusable(str(error) or type(error).__name__) from error
            loader._set_config(self._configuration)  # noqa: SLF001 - there is no public way to take the new token
        self._due = asyncio.get_running_loop().time() + 1.0

    async def _read(self) -> None:
        fresh = Configuration()
        try:
            if self._kubeconfig is None:
                config.load_incluster_config(client_configuration=fresh)  # type: ignore[no-untyped-call]  # the library's gap
            else:
                self._loader = await config.load_kube_config(
                    config_file=str(self._kubeconfig),
                    context=self._context or None,
                    client_configuration=fresh,
                    persist_config=False,
                )
        except yaml.YAMLError as error:
            # The library's own sentence spans lines and quotes the file.
            raise self._unusable(f"it is no YAML ({type(error).__name__})") from None
        except _UNUSABLE as error:
            there = self._kubeconfig is None or self._kubeconfig.exists()
            # Of a file that is not there the library says that it is not valid.
            raise self._unusable((str(error) or type(error).__name__) if there else "there is no such file") from error
        self._configuration = fresh
        self._environments = _environments_proxy(self.host)
        self._due = asyncio.get_running_loop().time() + RENEW_SECONDS
        try:
            self._load_tls()
        except (OSError, ValueError) as error:
            raise self._unusable(f"its certificates can't be used ({error})") from error

    def _unusable(self, problem: str) -> LoginError:
        where = self._kubeconfig or "the pod's service account"
        return LoginError(f"no API server from {where}: {problem}; give a kubeconfig that kubectl accepts")

    def _load_tls(self) -> None:
        """Make the TLS context once; a renewed client certificate serves the connections opened from then on."""
        if not self.host.startswith("https:"):
            return
        settings = self._configuration
        if self.tls is None:
            self.tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
            # Newer Pythons ask for extensions that the certificates of many clusters don't have.
            self.tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.verify_ssl:
            self.tls.check_hostname = False
            self.tls.verify_mode = ssl.CERT_NONE
        if settings.cert_file:
            self.tls.load_cert_chain(settings.cert_file, keyfile=settings.key_file)


def _environments_proxy(server: str) -> str | None:
    """Return the proxy of HTTPS_PROXY and its like, None where NO_PROXY exempts the server."""
    parts = urlsplit(server)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def find_kubeconfig(path: str) -> Path | None:
    """Return the kubeconfig to read, None for the pod's service account."""
    named = path or os.environ.get("KUBECONFIG", "")
    if named:
        return Path(named).expanduser()
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    return Path("~/.kube/config").expanduser()


def _is_exec(loader: KubeConfigLoader) -> bool:
    user = loader._user  # noqa: SLF001 - there is no public way to ask
    return user is not None and "exec" in user
