"""An archive of Debian packages in a folder, which apt takes by a ``file:`` address, signed by a key of its own."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path


class LocalArchive:
    """Suites with packages, each published anew as a whole."""

    def __init__(self, folder: Path, key_home: Path | None = None) -> None:
        self.folder = folder
        self._key_home = key_home

    @property
    def address(self) -> str:
        """What a source of apt's names."""
        return f"file:{self.folder}"

    def publish(
        self, suite: str, *packages: Path, gone: tuple[str, ...] = (), architecture: str = "amd64"
    ) -> None:  # fmt: skip
        """Make the suite hold these packages, without those whose names are gone."""
        indexed = [self._indexed(package) for package in packages]
        index = "\n".join(text for text in indexed if re.match(r"Package: (\S+)", text)[1] not in gone).encode()  # type: ignore[index]
        place = self.folder / "dists" / suite
        (place / f"main/binary-{architecture}").mkdir(parents=True, exist_ok=True)
        (place / f"main/binary-{architecture}/Packages").write_bytes(index)
        digest = hashlib.sha256(index).hexdigest()
        release = (
            f"Origin: Made\nSuite: {suite}\nCodename: {suite}\nArchitectures: {architecture}\nComponents: main\n"
            "Date: Thu, 01 Jan 2026 00:00:00 UTC\n"
            f"SHA256:\n {digest} {len(index)} main/binary-{architecture}/Packages\n"
        )
        (place / "Release").write_text(release)
        if self._key_home is not None:
            self._sign(place)

    def key(self, path: Path) -> Path:
        """Put the key that checks its signatures into a file."""
        path.write_bytes(self._gpg("--export"))
        return path

    def _indexed(self, package: Path) -> str:
        control = subprocess.run(("dpkg-deb", "-f", package), check=True, capture_output=True, text=True).stdout
        place = self.folder / "pool" / package.name
        place.parent.mkdir(parents=True, exist_ok=True)
        content = package.read_bytes()
        place.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        return f"{control}Filename: pool/{package.name}\nSize: {len(content)}\nSHA256: {digest}\n"

    def _sign(self, place: Path) -> None:
        (place / "InRelease").write_bytes(self._gpg("--clearsign", "--output", "-", str(place / "Release")))

    def _gpg(self, *words: str) -> bytes:
        assert self._key_home is not None
        if not self._key_home.exists():
            self._key_home.mkdir(mode=0o700)
            self._run("--passphrase", "", "--quick-generate-key", "made@example.org", "ed25519", "sign")
        return self._run(*words)

    def _run(self, *words: str) -> bytes:
        command = ("gpg", "--homedir", str(self._key_home), "--batch", "--yes", "--quiet", *words)
        return subprocess.run(command, check=True, capture_output=True).stdout
