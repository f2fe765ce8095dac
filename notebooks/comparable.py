"""Makes the rows of one question comparable: those that a section groups by place are of one host and the same work."""

import dataclasses

import phrases

# Peers of results that are older than the check of peers: of several vectors they computed one.
OF_ONE_VECTOR = ("cublas/", "cub/max/", "cub/inclusive_sum/")
# Peers of CPUs that use several threads. Others decline cells of several threads, which older results do not know.
THREADED = ("tbb/", "std_par/", "openmp/", "torch_cpu/")


def checks_peers(rows):
    """Whether a file is of a time when the results of peers were checked."""
    return any(phrases.is_peer(r.get("method", "")) and r.get("verified") is not None for r in rows)


def is_void(r):
    """Whether the row, of a file without checks of peers, is of a peer that did less than the whole work."""
    return (r.get("method", "").startswith(OF_ONE_VECTOR) and phrases.is_peer(r["method"]) and "seconds" in r
            and max(r.get("outer", 1), r.get("inner", 1)) > 1)


def uses_fewer_threads(r):
    """Whether the row is of a peer that uses one of several threads."""
    return ("seconds" in r and r.get("threads", 0) > 1 and phrases.is_peer(r.get("method", ""))
            and not r["method"].startswith(THREADED))


def host_of(source, r):
    """What identifies the host of a row: its own field, or kernel, processor, hardware threads and GPU of the file."""
    about = source.header.get("provenance", {})
    return r.get("host") or (about.get("kernel"), about.get("cpu"), about.get("hardware_threads"),
                             (about.get("gpu") or "").partition(",")[0])


def usable(source):
    """The source without rows that compare unequal work. The turns of its rows are those of no other file."""
    unchecked = not checks_peers(source.rows)
    rows = [r | {"turns": (source.path.name, r["turns"])} if "turns" in r else r for r in source.rows
            if not (uses_fewer_threads(r) or unchecked and is_void(r))]
    return dataclasses.replace(source, rows=rows, left_out=len(source.rows) - len(rows),
                               void=[r for r in source.rows if unchecked and is_void(r)])


def by_host(sources):
    """The sources of a question, each with the rows of one host. Further hosts of a machine have numbers."""
    hosts, made = {}, []
    for source in map(usable, sources):
        known, found = hosts.setdefault(source.machine, []), {}
        for r in source.rows:
            found.setdefault(host_of(source, r), []).append(r)
        for host, rows in found.items() or [(None, [])]:
            if host and host not in known:
                known.append(host)
            number = known.index(host) + 1 if host else 1
            made.append(dataclasses.replace(source, rows=rows, other_host=f" (host {number})" if number > 1 else ""))
            source = dataclasses.replace(source, void=[], left_out=0)  # counted once
    return made
