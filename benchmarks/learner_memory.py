"""Memory of the learner, latency and throughput of ``rankstream serve`` while offers and items keep joining.

Ten markets meet new offers until there are 94 in each. Every 10 seconds a line says how much memory server and learner
have, how quickly batches were answered, how many records wait to be learned, and how old the oldest model is: the time
since the last record that it knows arrived. At the end it says how near the models are to the choices, what is proven,
and how far their predictions for other offers are from the truth, which is that all items are chosen equally often.

    python benchmarks/learner_memory.py [--seconds 600] [--rate 10000] [--markets 10] [--items 30] [--offers 94]
"""

import argparse
import json
import random
import threading
import time
from typing import Any

import rankstream as rs
from service import described, lag, memory, paced, serving


def growing(items: int, offers: int, batches: int, seed: int) -> list[bytes]:
    """Batches of 100 choices of one market; each may have offers that were not seen before, until all are known."""
    chance = random.Random(seed)
    names = [f"item {number}" for number in range(items)]
    known: list[list[str]] = []
    found = []
    for number in range(batches):
        while len(known) < min(offers, 2 + number * offers // max(1, batches // 2)):
            known.append(chance.sample(names, chance.randint(3, min(8, items))))
        records = [{"offered": offer, "chosen": chance.choice(offer)} for offer in chance.choices(known, k=100)]
        found.append(json.dumps({"records": records}).encode())
    return found


def watch(client: rs.Client, pids: dict[str, int]) -> dict[str, Any]:
    """Memory now, and how far the markets are."""
    markets = client.markets()
    return {
        **{name: memory(pid) for name, pid in pids.items()},
        "offers": sum(one["offers"] for one in markets),
        "behind": sum(one["records"] - one["learned"] for one in markets),
        "oldest": max((one["model_age"] or 0.0 for one in markets), default=0.0),
        "dense": sum(one["kind"] == "max-entropy" for one in markets),
    }


def judge(client: rs.Client, items: int, n_offers: int = 20) -> str:
    """How good the models are once all records are learned: means over the markets."""
    waited = lag(client)
    chance = random.Random(1)
    offers = [[f"item {code}" for code in chance.sample(range(items), 5)] for _ in range(n_offers)]
    names = [facts["market"] for facts in client.markets()]
    proven = [client.certificate(name) for name in names]
    shares = [share for name in names for one in client.predict(name, offers) for share in one.values()]
    error = sum(abs(share - 0.2) for share in shares) / len(shares)
    distance, gap = (sum(one[name] for one in proven) / len(names) for name in ("distance", "gap"))
    return (
        f"all learned {waited:.1f} s later: distance {distance:.4f}, gap {gap:.4f}, mean error of predictions for "
        f"offers never made {error:.5f}"
    )


def main(words: list[str] | None = None) -> dict[str, float]:
    """Run it; the largest of everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=10_000.0, help="records a second, over all markets")
    parser.add_argument("--markets", type=int, default=10)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--offers", type=int, default=94, help="different offers of each market at the end")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between lines")
    given = parser.parse_args(words)
    per_market = given.rate / given.markets
    batches = max(2, int(given.seconds * per_market / 100))
    most: dict[str, float] = {}
    with serving() as served, rs.Client(served.url) as client:
        took: list[list[float]] = [[] for _ in range(given.markets)]

        def send(own: int) -> None:
            content = growing(given.items, given.offers, batches, own)
            path = f"/v1/markets/market{own}/choices"
            took[own] += paced(served.url, path, content, per_market / 100, given.seconds, 1)

        senders = [threading.Thread(target=send, args=(own,)) for own in range(given.markets)]
        began = time.perf_counter()
        for sender in senders:
            sender.start()
        while any(sender.is_alive() for sender in senders):
            time.sleep(min(given.every, given.seconds / 2))
            now = watch(client, served.pids())
            most = {name: max(value, most.get(name, 0.0)) for name, value in now.items()}
            print(
                f"{time.perf_counter() - began:4.0f} s: server {now['server']:.0f} MB, learner {now['learner']:.0f}, "
                f"{now['offers']:5,} offers, {now['behind']:9,} records behind, oldest model {now['oldest']:5.1f} s, "
                f"{now['dense']} markets with the best predictor",
                flush=True,
            )
        for sender in senders:
            sender.join()
        answered = [value for one in took for value in one]
        most["rate"] = 100 * len(answered) / (time.perf_counter() - began)
        print(f"{most['rate']:,.0f} records/s; {described(answered)}")
        print(f"at most: server {most['server']:.0f} MB, learner {most['learner']:.0f} MB")
        print(f"the oldest model was {most['oldest']:.1f} s old")
        print(judge(client, given.items))
        stopping = time.perf_counter()
        print(f"exit code {served.stop()} after {time.perf_counter() - stopping:.1f} s")
    return most


if __name__ == "__main__":
    main()
