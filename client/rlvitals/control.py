"""Hold the directive in force and decide, once a generation, what it means for the trainer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from rlvitals.records import Acknowledgement, AckStatus, Directive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlvitals.remedies import Remedies

REMEMBERED = 64
Decision = tuple[str, int, int | None]  # phase, step, generation


class Control:
    """Keep the newest directive; thread-safe.

    When the service disappears the last directive stays in force until its expiry: remedies that
    switch off and on with the network would be worse than either.
    """

    def __init__(
        self,
        acknowledge: Callable[[Acknowledgement], None],
        source: str = "0",
        abilities: Iterable[str] = (),
    ) -> None:
        self._acknowledge, self._source = acknowledge, source
        self._abilities = frozenset(abilities)
        self._lock = threading.RLock()  # a signal handler may reweight while in here
        self._directive: Directive | None = None
        self._spent: dict[int, AckStatus] = {}
        self._decisions: OrderedDict[Decision, Directive | None] = OrderedDict()
        self._threshold: tuple[int, float] | None = None

    @property
    def directive(self) -> Directive | None:
        """Give the newest directive heard of, whatever its mode; None before the first."""
        return self._directive

    @property
    def version(self) -> int:
        """Give the version of the newest directive; 0 before the first."""
        return self._directive.version if self._directive else 0

    def receive(self, directive: Directive | None) -> None:
        """Take in what the service said; an older version changes nothing."""
        with self._lock:
            if directive is not None and directive.version > self.version:
                self._directive = directive

    def decide(self, phase: str, step: int, generation: int | None) -> Directive | None:
        """Give the directive to apply to a generation, None for none; acknowledge it once.

        The same generation always gets the same answer, so that no group is split between two
        weightings. Evaluation is never touched.
        """
        if phase != "train":
            return None
        key = (phase, step, generation)
        with self._lock:
            if key not in self._decisions:
                self._decisions[key] = self._decision(step)
                if len(self._decisions) > REMEMBERED:
                    self._decisions.popitem(last=False)
            return self._decisions[key]

    def refuse(self, version: int, step: int, reason: str) -> None:
        """Stop applying a version and say why."""
        with self._lock:
            for key, decided in self._decisions.items():
                if decided is not None and decided.version == version:
                    self._decisions[key] = None
            self._spend(version, step, "refused", reason)

    def threshold(self, directive: Directive, remedies: Remedies) -> float | None:
        """Give AVSPO's present collapse threshold under a directive; None without AVSPO."""
        if remedies.avspo is None:
            return None
        if self._threshold is None or self._threshold[0] != directive.version:
            self._threshold = (directive.version, remedies.avspo.threshold)
        return self._threshold[1]

    def learn(self, directive: Directive, remedies: Remedies, acr_effective: float | None) -> None:
        """Move AVSPO's threshold by what the last generation showed."""
        current = self.threshold(directive, remedies)
        if remedies.avspo is None or current is None or acr_effective is None:
            return
        if remedies.avspo.adaptive:
            from rlvitals.remedies import next_threshold

            moved = next_threshold(current, acr_effective, remedies.avspo)
            self._threshold = (directive.version, moved)

    def _decision(self, step: int) -> Directive | None:
        directive = self._directive
        if directive is None:
            return None
        version = directive.version
        if self._spent.get(version) in ("refused", "expired"):
            return None
        if directive.mode == "off":
            self._spend(version, step, "acknowledged")
            return None
        expiry = directive.expires_at_step
        if expiry is not None and step >= expiry:
            self._spend(version, step, "expired")
            return None
        reason = self._impossible(directive)
        if reason:
            self._spend(version, step, "refused", reason)
            return None
        self._spend(version, step, "acknowledged")
        return directive

    def _impossible(self, directive: Directive) -> str:
        if directive.mode != "on":
            return f"mode: this client cannot do {directive.mode!r}"
        asked = {"focal": directive.focal, "avspo": directive.avspo}
        for name, parameters in asked.items():
            if parameters is not None and name not in self._abilities:
                return f"{name}: this trainer did not declare it"
        return ""

    def _spend(self, version: int, step: int, status: AckStatus, reason: str = "") -> None:
        if self._spent.get(version) == status:
            return
        self._spent[version] = status
        self._acknowledge(
            Acknowledgement(
                version=version, step=step, status=status, source=self._source, reason=reason[:500]
            )
        )
