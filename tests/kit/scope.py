"""What is started for a block and gone behind it."""

from __future__ import annotations

from typing import Self


class Scope:
    """A context manager: open() at the beginning, close() at the end, also when open() fails half way."""

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
