"""Priority level: its seats, and its queues by shuffle sharding."""

from __future__ import annotations

import hashlib
import math
from collections import deque

from kubist.api.filters.flowcontrol.seats import Seat
from kubist.model.meta.object import Object

MAX_SEATS_SHARE = 0.15
"""Share of a level's seats that one request may occupy."""


class Queue:
    """Queue of a few flows. `served` is its virtual time: the work of its dispatched requests in seat-seconds, relative
    to other queues. `work` is the work of the waiting requests."""

    __slots__ = ("served", "waiting", "work")

    def __init__(self) -> None:
        self.served = 0.0
        self.work = 0.0
        self.waiting: deque[Seat] = deque()


class Level:
    """A priority level: its seats and queues."""

    def __init__(self, obj: Object) -> None:
        self.name: str = obj["metadata"]["name"]
        self.nominal = 0
        self.most_seats = 0
        """Maximum number of seats of one request; 0 is no maximum."""
        self.executing = 0
        """Occupied seats."""
        self.queued = 0
        """Waiting requests."""
        self.now = 0.0
        self._queues: list[Queue] = []
        self.configure(obj)

    def configure(self, obj: Object) -> None:
        spec = obj["spec"]
        self.uid: str = obj["metadata"].get("uid", "")
        self.exempt = spec.get("type") == "Exempt"
        limits = spec.get("exempt" if self.exempt else "limited") or {}
        self.shares: int = limits.get("nominalConcurrencyShares", 0)
        self._lendable: int = limits.get("lendablePercent", 0)
        self._borrowing: int | None = limits.get("borrowingLimitPercent")
        queuing = (limits.get("limitResponse") or {}).get("queuing") or {}
        self.hand_size: int = queuing.get("handSize", 0)
        self.queue_length: int = queuing.get("queueLengthLimit", 0)
        self.queue_count: int = queuing.get("queues", 0)
        del self._queues[max(self.queue_count, self._last_used() + 1) :]

    @property
    def queues(self) -> list[Queue]:
        """The queues. They are created when the first request waits, because the queues of all levels take half a
        megabyte."""
        self._queues += [Queue() for _ in range(self.queue_count - len(self._queues))]
        return self._queues

    def _last_used(self) -> int:
        return max((index for index, queue in enumerate(self._queues) if queue.waiting), default=-1)

    @property
    def lendable(self) -> int:
        return self.nominal * self._lendable // 100

    @property
    def max_seats(self) -> float:
        """Maximum number of seats including borrowed ones."""
        if self._borrowing is None:
            return math.inf
        return self.nominal + math.ceil(self.nominal * self._borrowing / 100)

    def set_nominal(self, seats: int) -> None:
        self.nominal = seats
        if self.queue_count and not self.exempt:
            share = math.ceil(seats * MAX_SEATS_SHARE)
            self.most_seats = max(1, min(share, seats // max(1, self.hand_size)))
        else:
            self.most_seats = 0

    def deal(self, flow: str) -> Queue:
        """The queue with the least work among those dealt to a flow (shuffle sharding), so that a busy flow rarely
        blocks all queues of another flow."""
        value = int.from_bytes(hashlib.sha256(flow.encode()).digest()[:8], "little")
        queues = self.queues
        count = len(queues)
        hand: list[int] = []
        for left in range(count, count - min(self.hand_size, count), -1):
            value, card = divmod(value, left)
            for other in sorted(hand):
                if card >= other:
                    card += 1
            hand.append(card)
        return min((queues[card] for card in hand), key=lambda queue: (queue.work, len(queue.waiting)))

    def next_queue(self) -> Queue | None:
        """The queue whose first request would finish first in virtual time; None if no request waits."""
        waiting = (queue for queue in self._queues if queue.waiting)
        return min(waiting, key=lambda queue: queue.served + queue.waiting[0].work, default=None)
