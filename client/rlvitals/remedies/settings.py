"""Which remedies are in force, as a directive states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeVar

from rlvitals.remedies.avspo import Avspo
from rlvitals.remedies.focal import Focal

Settings = TypeVar("Settings", Focal, Avspo)


@dataclass(frozen=True, slots=True)
class Remedies:
    """Name the remedies in force; None means that one is off."""

    focal: Focal | None = None
    avspo: Avspo | None = None

    @property
    def gain_all_pass(self) -> float:
        """Give the gain of virtual rewards on solved groups, 0 by default beside focal weights."""
        if self.avspo is None:
            return 0.0
        if self.avspo.gain_all_pass is not None:
            return self.avspo.gain_all_pass
        return 0.0 if self.focal else 1.0

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Remedies:
        """Read ``{"focal": {...} or None, "avspo": {...} or None}``; ValueError names the field."""
        _refuse_unknown(plain, ("focal", "avspo"), "")
        return cls(_read(Focal, plain.get("focal")), _read(Avspo, plain.get("avspo")))

    def to_dict(self) -> dict[str, dict[str, Any] | None]:
        """Give plain builtins with every setting spelled out."""
        return {
            "focal": asdict(self.focal) if self.focal else None,
            "avspo": asdict(self.avspo) if self.avspo else None,
        }


def _read(kind: type[Settings], plain: Any) -> Settings | None:
    if plain is None:
        return None
    name = kind.__name__.lower()
    if not isinstance(plain, Mapping):
        raise ValueError(f"{name}: want an object of settings, got {plain!r}")  # noqa: TRY004
    _refuse_unknown(plain, tuple(item.name for item in fields(kind)), f"{name}.")
    for item in fields(kind):
        if item.default is MISSING and item.name not in plain:
            raise ValueError(f"{name}.{item.name}: is required")
    return kind(**plain)


def _refuse_unknown(plain: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for name in plain:
        if name not in known:
            raise ValueError(f"{prefix}{name}: unknown, want one of {', '.join(known)}")
