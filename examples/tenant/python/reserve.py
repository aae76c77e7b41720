#!/usr/bin/env python3
"""Reserves bandwidth of the network, and then sends a number of bytes.

The program asks for the rate that it wants. If the service refuses, the refusal has the most that
would be granted now, and the program takes that if it is enough. If the time of the reservation
nears its end before everything has arrived, the program extends it. At the end, also after an error
or SIGTERM, it cancels the reservation. (After SIGKILL the reservation ends by itself, at its end.)

    reserve.py --to 10.0.0.9:873 --size 4000000000 --rate 200Mbit --least 50Mbit --for 120 \\
        --service https://10.0.0.1:8420 --ca ca.pem --token-file shop.token \\
        --from-host web1 --to-host db1 --name backup
"""
import argparse
import datetime
import signal
import socket
import sys
import threading
import time
import urllib.parse
import uuid

from transfer import Refused, Service, say

HEADERS = 0.9  # of what is reserved is payload: a reservation counts the headers of layer 2 to 4
UNITS = {"bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}


def rate(text):
    """Bits per second, of a rate as a request has it: "2.5Mbit"."""
    for unit in sorted(UNITS, key=len, reverse=True):
        if text.endswith(unit):
            return round(float(text[: -len(unit)]) * UNITS[unit])
    raise ValueError(f"{text!r} is not a rate")


def moment(text):
    """Seconds of the epoch, of a time as the service writes it, which may have nanoseconds."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    at = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
    return at.timestamp() + float("0." + (fraction or "0"))


class Reservation:
    """Bandwidth from one host to another, for TCP to one port."""

    def __init__(self, service, name, length):
        self.service, self.name, self.length = service, name, length  # length in seconds
        self.granted = None

    def end(self):
        return moment(self.granted["end"])

    def path(self):
        return "/v1/reservations/" + urllib.parse.quote(self.granted["owner"]) + "/" + urllib.parse.quote(self.name)

    def call(self, method, path, body=None, **headers):
        key = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        return self.service.call(method, path, body, {**key, **headers})

    def reserve(self, source, destination, port, want, least):
        """Reserves a rate, or the most that is granted now if that is at least the lowest rate."""
        request = {
            "name": self.name,
            "from": {"host": source},
            "to": {"host": destination},
            "rate": want,
            "duration": f"{self.length}s",
            "flows": [{"protocol": "tcp", "destination_ports": port}],
        }
        for _ in range(5):  # another program may take what is offered
            try:
                self.granted, _ = self.call("POST", "/v1/reservations", request)
                say(f"reserved {self.granted['rate_bps'] / 1e6:g}Mbit until {self.granted['end']}")
                return
            except Refused as refused:
                offer = refused.problem.get("refusal", {}).get("most", {}).get("rate")
                if offer is None:
                    raise
                if rate(offer) < rate(least):
                    raise ValueError(f"{refused}: {offer} is offered, less than {least}") from None
                say(f"refused: {refused}; taking {offer}")
                request["rate"] = offer
        raise TimeoutError("others reserve again and again what is offered")

    def extend(self):
        """Makes the reservation longer by its length."""
        for _ in range(5):
            now, tag = self.service.call("GET", self.path())
            longer = moment(now["end"]) - moment(now["start"]) + self.length
            try:
                body = {**now["request"], "duration": f"{longer:.3f}s"}
                self.granted, _ = self.call("PUT", self.path(), body, **{"If-Match": tag})
                say(f"extended until {self.granted['end']}")
                return
            except Refused as refused:
                if refused.status != 412:  # else it was changed meanwhile: read it again
                    raise
        raise TimeoutError("the reservation is changed again and again by others")

    def release(self):
        """Cancels the reservation."""
        self.call("DELETE", self.path())
        say(f"released {self.name}")


class Sending(threading.Thread):
    """Sends below a rate, and waits until the other side has received everything and closes."""

    def __init__(self, connection, size, bits_per_second):
        super().__init__(daemon=True)
        self.connection, self.size, self.rate, self.error = connection, size, bits_per_second, None

    def run(self):
        try:
            block, sent, began = bytes(1 << 14), 0, time.monotonic()
            while sent < self.size:
                sent += self.connection.send(block[: self.size - sent])
                time.sleep(max(0, began + 8 * sent / (HEADERS * self.rate) - time.monotonic()))
            self.connection.shutdown(socket.SHUT_WR)
            if self.connection.recv(1):
                raise OSError("the other side has sent data: it should only receive")
        except OSError as error:
            self.error = error


def send(to, size, reservation):
    with socket.create_connection(to, timeout=10) as connection:
        connection.settimeout(None)
        sending = Sending(connection, size, reservation.granted["rate_bps"])
        sending.start()
        while sending.is_alive():
            sending.join(max(0, reservation.end() - time.time()) / 3)
            # A part of the time is left, in which a request that failed can be repeated.
            if sending.is_alive() and reservation.end() - time.time() < reservation.length / 2:
                try:
                    reservation.extend()
                except (OSError, Refused) as error:  # what is sent after the end is not held up
                    say(f"not extended: {error}")
                    sending.join(1)
        if sending.error:
            raise sending.error


def main():
    p = argparse.ArgumentParser(description="Reserves bandwidth, and then sends a number of bytes.")
    p.add_argument("--to", required=True, metavar="HOST:PORT")
    p.add_argument("--size", required=True, type=int, metavar="BYTES")
    p.add_argument("--rate", required=True, help="reserve this rate of layer 2")
    p.add_argument("--least", required=True, metavar="RATE", help="the lowest rate that is enough")
    p.add_argument("--for", dest="length", required=True, type=float, metavar="SECONDS", help="and extend by it")
    p.add_argument("--from-host", required=True, metavar="HOST", help="this host, as the network has it")
    p.add_argument("--to-host", required=True, metavar="HOST")
    p.add_argument("--name", required=True)
    p.add_argument("--service", required=True, metavar="URL")
    p.add_argument("--ca", required=True, metavar="FILE", help="the certificate of the service's authority")
    p.add_argument("--token-file", required=True, metavar="FILE")
    o = p.parse_args()
    # SIGTERM ends the program by an exception, so that what is in "finally" is done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    host, _, port = o.to.rpartition(":")
    with open(o.token_file) as f:
        reservation = Reservation(Service(o.service, o.ca, f.read().strip()), o.name, o.length)
    reservation.reserve(o.from_host, o.to_host, port, o.rate, o.least)
    try:
        send((host.strip("[]"), int(port)), o.size, reservation)
        say(f"{o.size} bytes arrived")
    finally:
        reservation.release()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, Refused) as error:
        sys.exit(str(error))
