"""What every decision derives from and is about, so that decisions can stand in more than one module."""

import msgspec


class Decided(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Anything the binder can say. None can be part of a cycle, so the garbage collector leaves them alone."""


class VmiId(msgspec.Struct, frozen=True, order=True, gc=False):
    """A VMI by namespace, name and uid: the same name comes back with another uid."""

    namespace: str
    name: str
    uid: str


class TemplateClaim(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One class entry of a VMI as a claim: `count` units of `class_name`, counted by `resource` (T24)."""

    name: str
    class_name: str
    count: int
    resource: str


class HeldClaim(msgspec.Struct, frozen=True, order=True, omit_defaults=True, gc=False):
    """A claim that a tenant ordered, by name and uid: `count` units of `class_name`, counted by `resource` (T24).

    `resource` is the one it was first placed under, else the class's of now.
    """

    name: str
    uid: str
    class_name: str
    count: int
    resource: str


class Over(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A budget that leaves too little of a key: whose it is, what it allows, what is used, how many more were asked."""

    namespace: str
    budget: str
    key: str
    hard: int
    used: int
    asked: int
