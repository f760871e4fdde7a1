"""The proxy between a client and a server that gives back what it gets."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from typing import Iterator

import pytest

from kit.proxy import Proxy
from kit.wait import wait_until


class Echo(socketserver.ThreadingTCPServer):
    """Says what it hears, and remembers it."""

    daemon_threads = True

    def __init__(self) -> None:
        self.heard = b""
        super().__init__(("127.0.0.1", 0), EchoHandler)


class EchoHandler(socketserver.BaseRequestHandler):
    server: Echo

    def handle(self) -> None:
        try:
            while data := self.request.recv(1 << 16):
                self.server.heard += data
                self.request.sendall(data)
        except ConnectionError:
            pass


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy(f"127.0.0.1:{echo.server_address[1]}") as proxy:
        yield proxy


def connect(proxy: Proxy, timeout: float = 10) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout)


def ask(client: socket.socket, words: bytes = b"hello") -> bytes:
    """Say `words` and read as many bytes."""
    client.sendall(words)
    return read(client, len(words))


def read(client: socket.socket, count: int) -> bytes:
    heard = b""
    while len(heard) < count:
        piece = client.recv(count - len(heard))
        if not piece:
            raise EOFError
        heard += piece
    return heard


def hears_nothing(client: socket.socket) -> bool:
    client.settimeout(0.05)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(10)
    return False


def test_what_passes_is_unchanged_to_its_end(proxy: Proxy) -> None:
    words = bytes(range(256)) * 4096

    def say(client: socket.socket) -> None:
        client.sendall(words)
        client.shutdown(socket.SHUT_WR)

    with connect(proxy) as client:
        sender = threading.Thread(target=say, args=[client])
        sender.start()
        assert read(client, len(words)) == words
        assert client.recv(1) == b""
        sender.join()
    wait_until(lambda: proxy.connections == 0, 10, "the proxy has forgotten the connection")


def test_a_cut_resets_what_is_there_and_not_what_comes(proxy: Proxy) -> None:
    with connect(proxy) as client:
        assert ask(client) == b"hello"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with connect(proxy) as client:
        assert ask(client) == b"hello"


def test_a_refusing_proxy_comes_back_on_its_port(proxy: Proxy) -> None:
    with connect(proxy) as client:
        assert ask(client) == b"hello"
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.heal()
    with connect(proxy) as client:
        assert ask(client) == b"hello"


def test_a_frozen_proxy_accepts_and_lets_nothing_pass(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as old:
        assert ask(old) == b"hello"
        proxy.freeze()
        with connect(proxy) as new:
            for client in (old, new):
                client.sendall(b"frozen")
                assert hears_nothing(client)
            assert echo.heard == b"hello"
            proxy.heal()
            assert read(old, 6) == read(new, 6) == b"frozen"


def test_answers_are_swallowed_until_the_connection_is_reset(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as client:
        proxy.to_client.drop = True
        client.sendall(b"hello")
        wait_until(lambda: proxy.to_client.swallowed == 5, 10, "the answer is swallowed")
        assert echo.heard == b"hello" and hears_nothing(client)
        proxy.heal()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with connect(proxy) as client:
        assert ask(client) == b"hello"


def test_requests_are_swallowed_while_others_keep_their_connection(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as client, connect(proxy) as other:
        assert ask(other, b"first") == b"first"
        proxy.to_server.drop = True
        client.sendall(b"hello")
        wait_until(lambda: proxy.to_server.swallowed == 5, 10, "the request is swallowed")
        proxy.heal()
        assert ask(other, b"last") == b"last"
        assert echo.heard == b"firstlast"


def test_each_direction_has_a_delay_of_its_own(proxy: Proxy) -> None:
    with connect(proxy) as client:
        proxy.to_client.delay = 0.2
        start = time.monotonic()
        assert ask(client) == b"hello"
        assert time.monotonic() - start >= 0.2


def test_without_a_server_the_client_is_reset(proxy: Proxy) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        proxy.target = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(ConnectionResetError), connect(proxy) as client:  # connect() may see it already
            client.recv(1)
