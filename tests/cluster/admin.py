"""Blocking requests as the cluster's administrator, for the time before a test's event loop runs.

Within a test use `tests.cluster.api`: a blocked loop could not answer the webhooks it serves itself.
"""

import http.client
import json
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.cluster.users import User, binding

Object = dict[str, Any]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REQUEST_SECONDS = 30.0
_SERVED_SECONDS = 180.0


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Object]:
    """One request on a fresh connection: (code, JSON document or {}). Raises OSError when nobody answers."""
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}
    except http.client.HTTPException as error:
        raise OSError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()


class Admin:
    """An administrator's requests to `server` (https://HOST:PORT) with a bearer token."""

    def __init__(self, server: str, tls: ssl.SSLContext, token: str) -> None:
        self._address = urlsplit(server)
        self._tls = tls
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Object]:
        """Return (code, document); raises OSError when nobody answers."""
        host = self._address.hostname or ""
        connection = http.client.HTTPSConnection(
            host, self._address.port or 443, timeout=_REQUEST_SECONDS, context=self._tls
        )
        return exchange(connection, method, path, body, self._headers)

    def ensure(self, collection: str, body: Object) -> None:
        """Create an object unless it exists; any other refusal is an error."""
        code, answer = self.request("POST", collection, body)
        if code not in {201, 409}:
            raise RuntimeError(f"{collection} {body['metadata']['name']}: {code} {answer.get('message')}")

    def bind(self, user: User, role: str, namespace: str = "") -> None:
        """Give a user a ClusterRole, in one namespace or everywhere."""
        self.ensure(*binding(user, role, namespace))

    def install(self, files: Iterable[Path]) -> None:
        """Create the CustomResourceDefinitions in YAML files and wait until their kinds are served."""
        documents = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
        for document in documents:
            self.ensure(_CRDS, document)
        for document in documents:
            spec = document["spec"]
            self._await_served(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}")

    def _await_served(self, collection: str) -> None:
        deadline = time.monotonic() + _SERVED_SECONDS
        while (answer := self.request("GET", f"{collection}?limit=1"))[0] != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{collection} is not served after {_SERVED_SECONDS:g} s: {answer}")
            time.sleep(0.05)
