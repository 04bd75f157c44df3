"""A NATS cluster whose members reach each other by wires that a test can cut: clients still reach every member."""

import asyncio
import itertools
from pathlib import Path
from types import TracebackType
from typing import Self

from typing_extensions import override

from deploy.local import LocalNatsCluster, NatsServer
from tests.wire import Wire

_NOBODY = 9
"""A port at which nothing listens: that of a service which throws everything away."""


class _Member(NatsServer):
    """A member that knows each other one by a wire of its own."""

    ways: dict[int, Wire]

    @override
    def config(self) -> str:
        text = super().config()
        for port, wire in self.ways.items():
            text = text.replace(f"nats://127.0.0.1:{port}", f"nats://127.0.0.1:{wire.port}")
        # What members tell each other of a third one would lead past the wires.
        return text.replace("cluster {", f'cluster {{ advertise: "127.0.0.1:{_NOBODY}",')


class LinkedNats(LocalNatsCluster):
    """`async with LinkedNats(directory) as nats:` three servers. Between `cut` and `mend` a member hears no other."""

    def __init__(self, directory: Path) -> None:
        self._wires: dict[tuple[str, str], Wire] = {}
        super().__init__(directory)

    @override
    def _members(self) -> list[NatsServer]:
        plain = super()._members()
        ports = plain[0].routes
        members: list[NatsServer] = []
        for index, one in enumerate(plain):
            member = _Member(one.directory, one.name, ports, index)
            member.ways = {}
            members.append(member)
        for (_, one), (at, other) in itertools.permutations(enumerate(members), 2):
            assert isinstance(one, _Member)
            wire = self._wires[one.name, other.name] = Wire(ports[at])
            one.ways[ports[at]] = wire
        return members

    @override
    async def __aenter__(self) -> Self:
        await asyncio.gather(*(wire.__aenter__() for wire in self._wires.values()))
        return await super().__aenter__()

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        await asyncio.gather(*(wire.__aexit__(kind, error, trace) for wire in self._wires.values()))

    def _links(self, member: NatsServer) -> list[Wire]:
        return [wire for names, wire in self._wires.items() if member.name in names]

    def cut(self, member: NatsServer) -> None:
        """Part a member from the others; nobody is told."""
        for wire in self._links(member):
            wire.cut()

    def mend(self, member: NatsServer) -> None:
        """Let it hear them again, and what was said meanwhile."""
        for wire in self._links(member):
            wire.mend()
