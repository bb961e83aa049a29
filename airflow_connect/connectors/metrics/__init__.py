"""The metrics source: one number per host and metric, sampled by each run (the second example of KIP-26).

Each pair of a host and a metric is a source partition with an offset of its own, and there may be very many of them:
the driver shares hosts among tasks as ranges of names (`ranges`), never as lists, and a task reads the offsets of what
it samples (`task`). What is measured comes from a sampler (`sampler`); the one that is built in looks at the host that
it runs on (`psutil_sampler`).
"""
