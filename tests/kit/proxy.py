"""A TCP proxy between a client and a server: the network that fails on request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any, Coroutine, Iterable

from kit import process
from kit.scope import Scope

PIECE = 1 << 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class Way:
    """One direction of all connections. May be changed at any time.

    Each piece of data is held for `delay` seconds, and what comes behind it too. With `drop`
    it is swallowed; `swallowed` counts those bytes. Connections that have lost some are of no
    more use: Proxy.heal() resets them. The next piece with `freeze_at` in it freezes the proxy
    instead of passing.
    """

    delay: float = 0.0
    drop: bool = False
    swallowed: int = 0
    freeze_at: bytes = b""


Lane = tuple[asyncio.StreamReader, asyncio.StreamWriter, Way]


class Proxy(Scope):
    """Forwards what comes to `address`, a port of 127.0.0.1, to `target` ("host:port").

    The port is known before the proxy is opened and stays the same; `target` may be set late:

        with Proxy() as proxy, Kafka(listeners={"PROXY": "PLAINTEXT"},
                                     advertised={"PROXY": proxy.address}) as kafka:
            proxy.target = kafka.address("PROXY")

    Faults last until heal(). `to_server` and `to_client` fail each by itself.
    """

    def __init__(self, target: str = "") -> None:
        self.target = target
        self.address = f"127.0.0.1:{process.free_port()}"
        self.to_server = Way()
        self.to_client = Way()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thawed = asyncio.Event()
        self._listener: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._torn: set[asyncio.StreamWriter] = set()
        self._served: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        self._thread.start()
        self.heal()

    def close(self) -> None:
        """Reset all connections and listen no more. May be called twice."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._run(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    @property
    def connections(self) -> int:
        """How many clients are connected to the target."""
        return len(self._ends) // 2

    # ---------------------------------------------------------------- faults

    def cut(self) -> None:
        """Reset all connections; new ones are welcome."""
        self._run(self._reset(self._ends))

    def refuse(self) -> None:
        """Reset all connections and refuse new ones."""
        self.shut()
        self.cut()

    def shut(self) -> None:
        """Refuse new connections; those there are go on."""
        self._run(self._stop_listening())

    def freeze(self) -> None:
        """Accept connections, keep those there are, and let nothing pass on any of them."""
        self._run(self._set_frozen(True))

    def heal(self) -> None:
        """Let everything pass again; reset the connections that have lost something."""
        for way in (self.to_server, self.to_client):
            way.drop, way.delay, way.freeze_at = False, 0.0, b""
        self._run(self._heal())

    # --------------------------------------------------------------- private

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _heal(self) -> None:
        await self._reset(self._torn)
        await self._set_frozen(False)
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def _set_frozen(self, frozen: bool) -> None:
        (self._thawed.clear if frozen else self._thawed.set)()

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _end(self) -> None:
        await self._stop_listening()
        for task in self._served:
            task.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _reset(self, ends: Iterable[asyncio.StreamWriter]) -> None:
        """Close with a reset, as a host does that has forgotten the connection."""
        closing = list(ends)
        for end in closing:
            with contextlib.suppress(OSError):  # closed already
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            end.transport.abort()
        await asyncio.gather(*(end.wait_closed() for end in closing), return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        ends = {client}
        self._ends |= ends
        try:
            await self._thawed.wait()
            host, port = self.target.rsplit(":", 1)
            answers, server = await asyncio.open_connection(host, int(port))
            ends.add(server)
            self._ends |= ends
            await self._carry((reader, server, self.to_server), (answers, client, self.to_client))
        except (OSError, asyncio.CancelledError):
            pass  # whoever is still connected learns of it by the reset
        finally:
            await self._reset(ends)
            self._ends -= ends
            self._torn -= ends
            self._served.discard(task)

    async def _carry(self, *lanes: Lane) -> None:
        """Let both sides speak until both have ended and heard all."""
        ends = {sink for _, sink, _ in lanes}
        await asyncio.gather(*(self._pump(*lane, ends) for lane in lanes))
        for end in ends:
            end.close()
            await end.wait_closed()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Way, ends: set[asyncio.StreamWriter]
    ) -> None:
        """Carry what `source` says to `sink`, its end too."""
        while piece := await source.read(PIECE):
            if way.freeze_at and way.freeze_at in piece:
                way.freeze_at = b""
                await self._set_frozen(True)
            await self._thawed.wait()
            await asyncio.sleep(way.delay)
            if way.drop:
                way.swallowed += len(piece)
                self._torn |= ends
            else:
                sink.write(piece)
                await sink.drain()
        with contextlib.suppress(OSError):
            sink.write_eof()
