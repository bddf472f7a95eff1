"""Random programs to schedule, and the best schedules by trying everything."""

from heapq import heappop, heappush

from cytape.graph.checkpoint.recompute_schedule import Program


def chain(rng, n, kinds=((0,), (-1,), (-1, 0))):
    """Values each of the one before; a step back reads a value, that before it, or both."""
    reads = [tuple(x for x in (value + offset for offset in rng.choice(kinds)) if x >= 0)
             for value in reversed(range(n))]
    return Program(
        [rng.randint(1, 8) for _ in range(n)], [float(rng.randint(1, 9)) for _ in range(n)],
        [(), *((value,) for value in range(n - 1))], reads)


def graph(rng, n):
    inputs = [tuple(sorted(rng.sample(range(value), min(value, rng.choice([1, 1, 2, 2, 3])))))
              for value in range(n)]
    reads = []
    for value in reversed(range(n)):
        read = rng.choice([(value,), inputs[value], (*inputs[value], value)])
        reads.append(tuple(sorted(set(read))))
    return Program([rng.randint(1, 8) for _ in range(n)],
                   [float(rng.randint(1, 9)) for _ in range(n)], inputs, reads)


def least_seconds(program, budget):
    """Dijkstra's algorithm over all sets of values that may be in memory; None: impossible."""
    n, n_stages = program.n_values, program.n_values + len(program.reads)
    last_forward = [max((other for other, read in enumerate(program.inputs) if value in read),
                        default=-1) for value in range(n)]
    start = (0, frozenset())
    best, pending, number = {start: 0.0}, [(0.0, 0, start)], 0
    while pending:
        time, _, state = heappop(pending)
        if time > best[state]:
            continue
        stage, live = state
        if stage == n_stages:
            return time
        used = sum(program.sizes[value] for value in live)
        following = []
        if stage < n:
            beside = program.bytes_around(stage)
            if used + program.sizes[stage] + beside <= budget:
                following.append((0.0, (stage + 1, live | {stage})))
            droppable = [value for value in live if last_forward[value] < stage]
        else:
            beside = program.bytes_beside(stage - n)
            if live.issuperset(program.reads[stage - n]) and used + beside <= budget:
                following.append((0.0, (stage + 1, live)))
            droppable = live
            following += [
                (program.costs[value], (stage, live | {value})) for value in range(n)
                if value not in live and live.issuperset(program.inputs[value])
                and used + program.sizes[value] + beside <= budget]
        following += [(0.0, (stage, live - {value})) for value in droppable]
        for cost, other in following:
            if time + cost < best.get(other, float("inf")):
                best[other] = time + cost
                number += 1
                heappush(pending, (time + cost, number, other))
    return None
