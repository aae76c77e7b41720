#!/usr/bin/env python3
"""Sends a number of bytes by a deadline, with no more bandwidth than it takes.

The program has a group of its own with a small guarantee. It puts its connection in that group
at the agent's socket, and watches how much the other side has acknowledged. From the middle of
its time on, if it would be late at the pace that it has, it asks the service for the guarantee
that it needs. At the end, however that comes, it gives back what it asked for. (If it is killed
with SIGKILL it cannot: the guarantee stays until somebody lowers it.)

    transfer.py --to 10.0.0.9:873 --size 4000000000 --within 600 \\
        --service https://10.0.0.1:8420 --ca ca.pem --token-file shop.token \\
        --host web1 --dev eth0 --group shop/backup
"""
import argparse
import collections
import fcntl
import json
import signal
import socket
import ssl
import struct
import sys
import termios
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

CHECK_EVERY = 0.25  # seconds
PACE_OVER = 2.0  # seconds: TCP's pace is not that of every instant
ASK_AGAIN = 1.0  # seconds, in which a new guarantee shows in the pace
SPARE = 1.1  # a guarantee counts headers, too (5 %), and the rest is for safety


def say(text):
    print(text, file=sys.stderr, flush=True)


class Refused(Exception):
    """The service's answer to what it does not do (RFC 9457)."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or problem.get("title") or f"status {status}")
        self.status, self.problem = status, problem


class Service:
    """The service, as the owner of a token sees it."""

    def __init__(self, url, ca, token):
        self.url, self.token = url.rstrip("/"), token
        self.trust = ssl.create_default_context(cafile=ca)

    def call(self, method, path, body=None, headers=None):
        """The answer and its ETag. A call that got lost is made again, which is why a change has
        an Idempotency-Key: it is made once all the same."""
        headers = {"Authorization": "Bearer " + self.token, **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(5):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            wait = 0.2 * 2**attempt
            try:
                with urllib.request.urlopen(request, timeout=5, context=self.trust) as answer:
                    text = answer.read()
                    return json.loads(text) if text else None, answer.headers["ETag"]
            except urllib.error.HTTPError as error:
                refused = Refused(error.code, json.load(error))
                if error.code not in (429, 503):  # too many at a time, or not now
                    raise refused from None
                wait, last = float(error.headers.get("Retry-After", 1)), refused
            except OSError as error:
                last = error
            time.sleep(wait)
        raise last


class Group:
    """A group of one's own, whose guarantee is borrowed for a while."""

    def __init__(self, service, host, dev, path):
        self.service, self.path = service, path
        self.groups = f"/v1/hosts/{host}/interfaces/{urllib.parse.quote(dev)}/out/groups/"
        self.had = None  # its guarantee before, as (text or None,)
        self.asked = set()  # what was asked for since, in bits per second

    def see(self, path):
        return self.service.call("GET", self.groups + urllib.parse.quote(path, safe=""))

    def change(self, guarantee, tag):
        """Changes what was seen with this ETag, and nothing newer."""
        headers = {
            "Content-Type": "application/merge-patch+json",
            "If-Match": tag,
            "Idempotency-Key": str(uuid.uuid4()),
        }
        path = self.groups + urllib.parse.quote(self.path, safe="")
        return self.service.call("PATCH", path, {"guarantee": guarantee}, headers)

    def ask(self, want):
        """Raises the guarantee to what is wanted, or to what is free if that is less. Returns it."""
        for _ in range(5):
            now, tag = self.see(self.path)
            if self.had is None:
                self.had = (now.get("guarantee"),)
            want = min(round(want), now["ceiling_bps"])
            if want <= now["guaranteed_bps"]:
                return now["guaranteed_bps"]
            self.asked.add(want)  # before: if the answer is lost, it may have been done
            try:
                self.change(f"{want}bit", tag)
                return want
            except Refused as refused:
                if refused.status == 412:  # somebody changed it meanwhile: look again
                    continue
                if refused.status != 422:
                    raise
                around, _ = self.see(self.path.rpartition("/")[0])
                want = now["guaranteed_bps"] + around["unallocated_bps"]
                say(f"refused: {refused}; {want / 1e6:.1f} Mbit/s are to be had")
        raise TimeoutError("the group is changed again and again by others")

    def give_back(self):
        """Makes the guarantee what it was, unless somebody else has changed it since."""
        while self.asked:
            now, tag = self.see(self.path)
            if now["guaranteed_bps"] not in self.asked:  # somebody else has changed it
                break
            try:
                self.change(self.had[0], tag)
                say(f"released {now['guaranteed_bps'] / 1e6:.1f} Mbit/s: the guarantee is {self.had[0]} again")
                break
            except Refused as refused:
                if refused.status != 412:
                    raise
        self.asked.clear()


def agent(path, request, connection):
    """Says something about a connection to the agent of this host, which it hands over to show that
    it has it."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(5)
        asked.connect(path)
        socket.send_fds(asked, [json.dumps(request).encode()], [connection.fileno()])
        answer = json.loads(asked.makefile().read())
    if "error" in answer:
        raise PermissionError(answer["error"]) if answer.get("denied") else OSError(answer["error"])
    return answer


class Sending(threading.Thread):
    """Writes so many bytes, beside who watches."""

    def __init__(self, connection, size):
        super().__init__(daemon=True)
        self.connection, self.size, self.sent, self.error = connection, size, 0, None

    def run(self):
        block = bytes(1 << 16)
        try:
            while self.sent < self.size:
                self.sent += self.connection.send(block[: self.size - self.sent])
        except OSError as error:
            self.error = error

    def arrived(self):
        """Bytes that the other side has acknowledged. What is written only may be megabytes, which
        would look like progress."""
        if self.error:
            raise self.error
        sent = self.sent
        waiting = fcntl.ioctl(self.connection, termios.TIOCOUTQ, bytes(4))
        return max(0, sent - struct.unpack("i", waiting)[0])


def transfer(connection, size, within, group):
    start = asked = time.monotonic()
    deadline = start + within
    past = collections.deque([(start, 0)])  # what had arrived when
    sending = Sending(connection, size)
    sending.start()
    while True:
        time.sleep(CHECK_EVERY)
        now, arrived = time.monotonic(), sending.arrived()
        if arrived == size:
            return now - start
        if now >= deadline:
            raise TimeoutError(f"the time is over, and {arrived} of {size} bytes have arrived")
        past.append((now, arrived))
        while now - past[0][0] > PACE_OVER:
            past.popleft()
        pace = 8 * (arrived - past[0][1]) / max(now - past[0][0], CHECK_EVERY)
        needed = 8 * (size - arrived) / (deadline - now)
        if not group or now - start < within / 2 or pace >= needed or now - asked < ASK_AGAIN:
            continue
        late = f"{now - start:.1f} s: {pace / 1e6:.1f} Mbit/s, and {needed / 1e6:.1f} are needed: "
        try:
            say(late + f"the guarantee is {group.ask(needed * SPARE) / 1e6:.1f}")
        except (OSError, Refused) as error:  # it may be in time all the same
            say(late + str(error))
        asked = time.monotonic()


def main():
    p = argparse.ArgumentParser(description="Sends a number of bytes by a deadline.")
    p.add_argument("--to", required=True, metavar="HOST:PORT")
    p.add_argument("--size", required=True, type=int, metavar="BYTES")
    p.add_argument("--within", required=True, type=float, metavar="SECONDS")
    p.add_argument("--service", metavar="URL", help="without it nothing is asked for")
    p.add_argument("--ca", metavar="FILE", help="the certificate of the service's authority")
    p.add_argument("--token-file", metavar="FILE")
    p.add_argument("--host", help="this host, as the service has it")
    p.add_argument("--dev", help="the device that the group is of")
    p.add_argument("--group", required=True, metavar="PATH")
    p.add_argument("--socket", default="/run/headgate/agent.sock", metavar="PATH")
    o = p.parse_args()
    # SIGTERM ends the program by an exception, so that what is in "finally" is done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    group = None
    if o.service:
        with open(o.token_file) as f:
            group = Group(Service(o.service, o.ca, f.read().strip()), o.host, o.dev, o.group)
    host, _, port = o.to.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=10) as connection:
        there = agent(o.socket, {"assign": o.group}, connection)
        say(f"{there['connection']} is in {there['group']}")
        connection.settimeout(None)
        try:
            took = transfer(connection, o.size, o.within, group)
        finally:
            try:
                if group:
                    group.give_back()
            finally:
                agent(o.socket, {"unassign": True}, connection)
    say(f"{o.size} bytes arrived in {took:.1f} s")


if __name__ == "__main__":
    try:
        main()
    except (OSError, Refused) as error:
        sys.exit(str(error))
