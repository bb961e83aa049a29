"""The metrics source: one number per host and metric, sampled by each run (the second example of KIP-26).

Each pair of a host and a metric is a source partition with its own offset, and there may be very many of them. The
driver therefore assigns hosts to tasks as ranges of names (`ranges`), never as lists, and a task reads only the offsets
of what it samples (`task`). A sampler does the measuring (`sampler`); the built-in one measures the host that it runs
on (`psutil_sampler`).
"""
