"""What stays set up from scenario to scenario: the kernel's routing, which most scenarios' own steps stand on."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.data_paths.contract import DataPath, Hop
from pdrgate.data_paths.network_state import KnownNetworks


class StandingBase:
    """A data path that hosts are set up with until it is left; hosts that end soon need not be put back."""

    def __init__(self) -> None:
        self.networks = KnownNetworks()
        """What the hosts have with it."""
        self._path: DataPath | None = None
        self._networks: dict[str, KnownNetworks] = {}
        """Networks of the hosts by the name of the path, which makes the same each time."""

    def stand(self, path: DataPath, hops: Sequence[Hop]) -> DataPath:
        """Have the hosts set up as a path says; the one that did it, ``path`` or one of its name that stands.

        Raises TestbedError; nothing stands then.
        """
        if self._path is None or self._path.name != path.name:
            self.leave()
            self._path = path
            self.networks = self._networks.setdefault(path.name, KnownNetworks())
            try:
                path.apply(hops)
                for hop in hops:
                    self.networks.again(hop.host)
            except BaseException:
                self.leave()
                raise
        for hop in hops:
            self.networks.of(hop.host)
        return self._path

    def leave(self) -> list[str]:
        """Put the hosts back; sentences on what could not be. Harmless where nothing stands."""
        path, self._path = self._path, None
        return [] if path is None else path.restore()
