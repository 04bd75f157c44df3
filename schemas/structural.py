"""Structural schemas from types: a msgspec Struct in, the OpenAPI v3 schema of a CRD out.

Constraints and descriptions stand on the fields as `msgspec.Meta`, CEL rules of a whole object in its
`rules`. A field `X | None` may be absent; it is never null, so that no rule meets a null. `int | str` is
what Kubernetes calls int-or-string: a quantity is given as either.
"""

from enum import Enum
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

Schema = dict[str, Any]

_RULES = "x-kubernetes-validations"
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One CEL rule: `rule` must hold, else the request is refused with `message`."""

    rule: str
    message: str
    field_path: str = ""


class Shape(msgspec.Struct, frozen=True):
    """What every described object derives from: `rules` hold for the object as a whole."""

    rules: ClassVar[tuple[Rule, ...]] = ()


def ruled(*rules: Rule) -> dict[str, Any]:
    """Return rules of one field, as `msgspec.Meta(extra_json_schema=...)` takes them."""
    return {_RULES: [msgspec.to_builtins(rule) for rule in rules]}


def listed_by(*keys: str) -> dict[str, Any]:
    """Return the marks of a list that is a map by these keys of its items."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def structural(kind: type[Shape]) -> Schema:
    """Return the structural schema of a struct. Raises TypeError for a type that no field of ours may have."""
    return _schema(inspect.type_info(kind))


def _schema(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.Metadata():
            return _schema(kind.type) | (kind.extra_json_schema or {})
        case inspect.UnionType(types=types):
            present = [one for one in types if not isinstance(one, inspect.NoneType)]
            if {type(one) for one in present} == {inspect.IntType, inspect.StrType}:
                return dict(_INT_OR_STRING)
            (only,) = present
            return _schema(only)
        case inspect.StructType():
            return _object(kind)
        case inspect.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case inspect.StrType():
            bounds = {"minLength": kind.min_length, "maxLength": kind.max_length, "pattern": kind.pattern}
            return {"type": "string"} | _given(bounds)
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _given({"minimum": kind.ge, "maximum": kind.le})
        case inspect.DictType(key_type=inspect.StrType()):
            return {"type": "object", "additionalProperties": _schema(kind.value_type)} | _given(
                {"maxProperties": kind.max_length}
            )
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.VarTupleType():
            return {"type": "array", "items": _schema(kind.item_type)} | _given({"maxItems": kind.max_length})
        case _:
            msg = f"{kind} has no structural schema here; give the field a struct, enum, str, int, bool, tuple or dict"
            raise TypeError(msg)


def _object(kind: inspect.StructType) -> Schema:
    properties = {field.encode_name: _schema(field.type) | _default(field) for field in kind.fields}
    schema: Schema = {"type": "object", "description": " ".join((kind.cls.__doc__ or "").split())}
    required = [field.encode_name for field in kind.fields if field.required]
    if required:
        schema["required"] = required
    rules: tuple[Rule, ...] = getattr(kind.cls, "rules", ())
    return schema | {"properties": properties} | (ruled(*rules) if rules else {})


def _default(field: inspect.Field) -> Schema:
    """Empty defaults mean absence; the API server fills in the others."""
    value = field.default
    if (
        field.required
        or not value
        or isinstance(value, msgspec.Struct)
        or field.default_factory is not msgspec.NODEFAULT
    ):
        return {}
    return {"default": value.value if isinstance(value, Enum) else value}


def _given(bounds: dict[str, Any]) -> Schema:
    return {name: bound for name, bound in bounds.items() if bound is not None}
