"""Know whether other processes use the same thing on a cluster, so that the last one ends it."""

from __future__ import annotations

from typing import Any, final
from uuid import uuid4

__all__ = ["Presence"]

SPACE = "counterpoint"  # of the names of actors


@final
class Presence:
    """This process as a user of something that it shares. Ray must be connected.

    It is an actor with a name. Ray ends an actor with the process that started it, also if that was killed.
    So there are no leases to renew, and nothing is left of a user that died.

    Args:
        shared: the name of what is shared.
    """

    def __init__(self, shared: str):
        import ray

        self._shared, self._name = shared, f"{shared} {uuid4().hex}"
        made: Any = ray.remote(num_cpus=0)(_Mark)
        self._actor = made.options(name=self._name, namespace=SPACE).remote()
        ray.get(self._actor.there.remote())

    def leave(self) -> bool:
        """Stop being a user; return whether there is no other."""
        import ray
        from ray.util import list_named_actors

        ray.kill(self._actor)
        known: Any = list_named_actors(all_namespaces=True)
        names = {each["name"] for each in known if each["namespace"] == SPACE} - {self._name}
        return all(name.rpartition(" ")[0] != self._shared for name in names)


@final
class _Mark:
    """Is there as long as the process that started it."""

    def there(self) -> bool:
        return True
